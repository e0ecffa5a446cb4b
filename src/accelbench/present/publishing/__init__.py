"""The dashboard of a store as static files: pages as the application gives them, the table of
results from Parquet in the browser. Any web server can host them, under any path."""
