"""A read-only web application over a database or a lake.

routes     the addresses; `page_base` has what their pages share, `serve` the socket
guard      access and security headers
page_query the query of an address: filters, order, page. Pure
words      formats of numbers, dates and names. Pure
snapshots  all cells of the store in memory, and the data of one cell
overview   the first page: findings, changes, runs
results    the table of results, and the page of one configuration
comparing  the comparison of chosen configurations
entities   models, devices and engines, and two of them compared
explore    points by chosen axes, and distributions
history    results over time
questions  `recommend` and `predict` as forms, and the accuracy of predictions
runs       runs, one that goes on, and two compared
pictures   charts and files of them
"""
