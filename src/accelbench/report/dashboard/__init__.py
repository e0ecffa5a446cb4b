"""A local web application over a database or a lake: it looks, and changes nothing.

asked      what an address asks for: filters, order, page. Pure
snapshot   every cell of the store in memory, made anew when the store has changed
cells      questions to it
details    what lies behind one cell: launches, samples, evidence, history
live       runs, and what the journal of one that goes on says
pictures   charts of what was asked for
prediction_pages  how good predictions of what the store has would be
guard      who may ask at all, and what a browser is told about each answer
app        the pages
serve      the socket
"""
