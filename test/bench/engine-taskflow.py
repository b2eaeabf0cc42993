"""Runs a flow on TaskFlow's serial engine so many times, and prints atoms per second. Edges come on standard input."""
import json
import logging
import sys
import time

import taskflow.engines
from taskflow import task
from taskflow.patterns import graph_flow, linear_flow, unordered_flow

logging.disable(logging.CRITICAL)


class Task(task.Task):
    def execute(self):
        return 1


def flow_of(shape, atoms, edges):
    tasks = [Task(name='t%d' % index) for index in range(atoms)]
    if shape == 'linear':
        return linear_flow.Flow(shape).add(*tasks)
    if shape == 'unordered':
        return unordered_flow.Flow(shape).add(*tasks)
    flow = graph_flow.Flow(shape)
    flow.add(*tasks)
    # Drawn all at once: a link by itself checks the whole graph for circles each time.
    drawn = flow._graph.copy()
    for before, after in edges:
        drawn.add_edge(tasks[before], tasks[after])
    flow._swap(drawn)
    return flow


shape, atoms, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
edges = json.load(sys.stdin)
spent = 0.0
for _ in range(runs):
    engine = taskflow.engines.load(flow_of(shape, atoms, edges), engine='serial')
    engine.compile()
    engine.prepare()
    begin = time.monotonic()
    engine.run()
    spent += time.monotonic() - begin
print(runs * atoms / spent)
