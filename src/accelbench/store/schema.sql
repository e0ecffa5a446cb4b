-- The tables of facts, and the views of them under the documents' names.

CREATE TABLE store_meta (
    application VARCHAR, schema_version INTEGER, created_at TIMESTAMP, created_by VARCHAR
);
CREATE TABLE fact (
    kind VARCHAR, id VARCHAR, run_id VARCHAR, line BIGINT, version INTEGER, body JSON
);
CREATE TABLE fact_samples (
    result_id VARCHAR, run_id VARCHAR, phase VARCHAR, timing VARCHAR,
    steps BIGINT[], samples BIGINT[]
);
CREATE TABLE journal_state (
    name VARCHAR, bytes BIGINT, tail_crc BIGINT, lines BIGINT, corrupt BIGINT[]
);

CREATE VIEW benchmark_runs AS
WITH started AS (
    SELECT run_id, arg_min(body, line) AS body FROM fact WHERE kind = 'run_started' GROUP BY run_id
), resumed AS (
    SELECT run_id, count(*) AS times, max(line) AS line
    FROM fact WHERE kind = 'run_resumed' GROUP BY run_id
), finished AS (
    SELECT run_id, arg_max(body, line) AS body, max(line) AS line
    FROM fact WHERE kind = 'run_finished' GROUP BY run_id
)
SELECT
    started.run_id,
    started.body->>'label' AS label,
    started.body->>'command' AS command,
    CASE WHEN finished.line > coalesce(resumed.line, 0)
        THEN coalesce(finished.body->>'status', 'finished') ELSE 'unfinished' END AS status,
    try_cast(started.body->>'started_at' AS TIMESTAMP) AS started_at,
    CASE WHEN finished.line > coalesce(resumed.line, 0)
        THEN try_cast(finished.body->>'finished_at' AS TIMESTAMP) END AS finished_at,
    coalesce(resumed.times, 0) AS times_resumed,
    started.body->>'git_commit' AS git_commit,
    started.body->>'git_branch' AS git_branch,
    started.body->'plan' AS plan,
    started.body->'environment' AS environment
FROM started LEFT JOIN resumed USING (run_id) LEFT JOIN finished USING (run_id);

CREATE VIEW hardware_info AS
WITH seen AS (
    SELECT body->>'fingerprint' AS device_fingerprint, body,
        run_id || '/' || lpad(line::VARCHAR, 12, '0') AS moment
    FROM fact WHERE kind = 'hardware_measured' AND body->>'fingerprint' IS NOT NULL
), latest AS (
    SELECT device_fingerprint, arg_max(body, moment) AS body,
        arg_max(try_cast(body->>'peak_compute_flops' AS DOUBLE), moment)
            FILTER (WHERE body->>'peak_compute_flops' IS NOT NULL) AS compute,
        arg_max(try_cast(body->>'peak_bandwidth_bytes_per_s' AS DOUBLE), moment)
            FILTER (WHERE body->>'peak_bandwidth_bytes_per_s' IS NOT NULL) AS bandwidth,
        arg_max(body->>'peaks_source', moment)
            FILTER (WHERE body->>'peak_compute_flops' IS NOT NULL) AS peaks_source,
        arg_max(try_cast(body->>'peaks_measured_at' AS TIMESTAMP), moment)
            FILTER (WHERE body->>'peak_compute_flops' IS NOT NULL) AS peaks_measured_at
    FROM seen GROUP BY device_fingerprint
)
SELECT
    device_fingerprint,
    body->>'hardware' AS hardware,
    body->>'vendor' AS vendor,
    body->>'name' AS device_name,
    try_cast(body->>'count' AS BIGINT) AS unit_count,
    try_cast(body->>'memory_bytes' AS DOUBLE) / 1048576 AS memory_mb,
    try_cast(body->>'power_limit_watts' AS DOUBLE) AS power_limit_watts,
    body->>'driver' AS driver,
    body->>'runtime_version' AS runtime_version,
    try_cast(body->>'emulated' AS BOOLEAN) AS emulated,
    compute AS peak_compute_flops,
    bandwidth AS peak_bandwidth_bytes_per_s,
    body->'details' AS details,
    try_cast(body->>'measured_at' AS TIMESTAMP) AS measured_at,
    peaks_source,
    peaks_measured_at
FROM latest;

CREATE VIEW raw_benchmark_data AS
SELECT result_id, run_id, phase, timing, len(samples) AS sample_count, steps, samples
FROM fact_samples;

CREATE VIEW device_calibrations AS
WITH calibrated AS (
    SELECT run_id, body, unnest(CAST(body->'figures' AS JSON[])) AS figure
    FROM fact WHERE kind = 'device_calibrated'
)
SELECT
    run_id AS calibration_id,
    body->>'fingerprint' AS device_fingerprint,
    body->>'hardware' AS hardware,
    body->>'device_name' AS device_name,
    figure->'spec'->>'name' AS probe,
    figure->'spec'->>'kind' AS kind,
    figure->'spec'->>'precision' AS precision,
    try_cast(figure->'spec'->>'size' AS BIGINT) AS size,
    try_cast(figure->>'value' AS DOUBLE) AS value,
    try_cast(figure->>'low' AS DOUBLE) AS value_low,
    try_cast(figure->>'high' AS DOUBLE) AS value_high,
    CASE figure->'spec'->>'kind' WHEN 'launch' THEN 's' WHEN 'memory' THEN 'B/s'
        WHEN 'cache' THEN 'B/s' WHEN 'collective' THEN 'B/s' ELSE 'FLOP/s' END AS unit,
    try_cast(figure->>'steps' AS BIGINT) AS steps_per_block,
    CAST(figure->'samples_ns' AS BIGINT[]) AS samples,
    body->>'engine' AS engine,
    try_cast(body->>'threads' AS BIGINT) AS threads,
    try_cast(body->>'measured_at' AS TIMESTAMP) AS measured_at
FROM calibrated;
