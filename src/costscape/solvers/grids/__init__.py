"""The parts of ``Separable``: one coordinate is searched on a grid, all of them at once.

even        the grid
table       f of all outcomes on the grid, kept between calls
valleys     the lowest points of g on the grid
spots       a closer look at them, plainly
modelled    the same with few evaluations: only outcomes whose cost bends there (bends)
single      one x: only the part of the table that may hold its best action (groups)
cuts        what that first needs of f between grid points, kept with the table
condensed   many outcomes as few nodes (nodes, deviations)
kept        what is kept between calls, within bounds
dust        weights too small to count
"""
