"""A local web application over a database or a lake: it looks, and changes nothing.

app        the addresses; `site` is what their pages share, `serve` the socket
guard      who may ask at all, and what a browser is told about each answer
asked      what an address asks for: filters, order, page. Pure
words      figures, moments and sizes as people read them. Pure
snapshots  every cell of the store in memory, questions to it, and what lies behind one cell
overview   the first page: findings, best of each task, what runs
results    the table of results, and the page of one configuration
comparing  chosen configurations beside each other
entities   models, devices and engines, and two of them beside each other
explore    points by chosen axes, and how a figure is spread
questions  `recommend` and `predict` as forms, and how good predictions are
runs       runs, one against another, and what the journal of one that goes on says
pictures   charts of what was asked for, and files of them
"""
