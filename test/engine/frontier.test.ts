import { describe, expect, test } from 'vitest'
import { ReadyFrontier } from '../../src/engine/frontier.ts'
import { type AnyTask, compile, type ExecutionGraph, graph, input, linear, link, task } from '../../src/flow/index.ts'

/** For each name, those it comes after. */
function graphOf(edges: Record<string, readonly string[]>, priorities: Record<string, number> = {}): ExecutionGraph {
  const tasks = new Map(
    Object.keys(edges).map((name): [string, AnyTask] => [
      name,
      task(name, { execute: () => undefined, priority: priorities[name] }),
    ]),
  )
  const named = (name: string): AnyTask => {
    const found = tasks.get(name)
    if (!found) throw new Error(name)
    return found
  }
  const links = Object.entries(edges).flatMap(([to, before]) => before.map((from) => link(named(from), named(to))))
  return compile(graph({ name: 'g', links }, input(), ...tasks.values()))
}

/** The names of all that have come up. */
function up(frontier: ReadyFrontier): string[] {
  const names: string[] = []
  for (let node = frontier.take(); node; node = frontier.take()) if (node.atom) names.push(node.atom.name)
  return names
}

const diamond = graphOf({ top: [], left: ['top'], right: ['top'], bottom: ['left', 'right'] })

function nodeOf({ byName }: ExecutionGraph, name: string) {
  const node = byName.get(name)
  if (!node) throw new Error(name)
  return node
}

const EXECUTED = { done: true, clean: false }
const BEGUN = { done: false, clean: false }
const CLEAN = { done: false, clean: true }

describe('forwards', () => {
  test('a node comes up when all before it are done', () => {
    const frontier = new ReadyFrontier(diamond.nodes)
    const settle = (name: string) => frontier.mark(nodeOf(diamond, name), EXECUTED)
    expect(up(frontier)).toEqual(['top'])
    settle('top')
    expect(up(frontier)).toEqual(['left', 'right'])
    settle('left')
    expect(up(frontier)).toEqual([])
    settle('right')
    expect(up(frontier)).toEqual(['bottom'])
    settle('bottom')
    expect([up(frontier), frontier.undoneCount]).toEqual([[], 0])
  })

  test('what is done waits for what is not, right back to the beginning', () => {
    const chain = graphOf({ a: [], new: ['a'], c: ['new'], d: ['c'] })
    const frontier = new ReadyFrontier(chain.nodes)
    for (const name of ['a', 'c']) frontier.mark(nodeOf(chain, name), EXECUTED)
    expect(up(frontier).filter((name) => frontier.isOpen(nodeOf(chain, name)))).toEqual(['a', 'new'])
    expect(frontier.isOpen(nodeOf(chain, 'd'))).toBe(false)
    frontier.mark(nodeOf(chain, 'new'), EXECUTED)
    expect(up(frontier)).toEqual(['d'])
  })

  test('what is not done any more closes what comes after it', () => {
    const frontier = new ReadyFrontier(diamond.nodes)
    for (const name of ['top', 'left', 'right']) frontier.mark(nodeOf(diamond, name), EXECUTED)
    expect(frontier.isOpen(nodeOf(diamond, 'bottom'))).toBe(true)
    frontier.mark(nodeOf(diamond, 'top'), BEGUN)
    expect(frontier.isOpen(nodeOf(diamond, 'bottom'))).toBe(false)
    frontier.mark(nodeOf(diamond, 'top'), EXECUTED)
    expect(frontier.isOpen(nodeOf(diamond, 'bottom'))).toBe(true)
  })
})

describe('backwards', () => {
  test('a node is free when all after it are clean', () => {
    const frontier = new ReadyFrontier(diamond.nodes)
    for (const node of diamond.atoms) frontier.mark(node, EXECUTED)
    up(frontier)
    const undo = (name: string) => frontier.mark(nodeOf(diamond, name), CLEAN)
    undo('bottom')
    expect(up(frontier)).toEqual(['left', 'right'])
    undo('left')
    expect(frontier.isFree(nodeOf(diamond, 'top'))).toBe(false)
    undo('right')
    expect(up(frontier)).toEqual(['top'])
    undo('top')
    expect(diamond.atoms.every((node) => frontier.isSubtreeClean(node))).toBe(true)
  })

  test('a clean node between two that are not does not free the first', () => {
    const chain = graphOf({ a: [], new: ['a'], c: ['new'] })
    const frontier = new ReadyFrontier(chain.nodes)
    for (const name of ['a', 'c']) frontier.mark(nodeOf(chain, name), EXECUTED)
    expect([frontier.isFree(nodeOf(chain, 'a')), frontier.isSubtreeClean(nodeOf(chain, 'new'))]).toEqual([false, false])
    frontier.mark(nodeOf(chain, 'c'), CLEAN)
    expect(frontier.isFree(nodeOf(chain, 'a'))).toBe(true)
  })
})

test('the greatest priority comes first, and of one priority who came first', () => {
  const flat = graphOf({ a: [], b: [], c: [], d: [] }, { b: 5, c: -1, d: 5 })
  expect(up(new ReadyFrontier(flat.nodes))).toEqual(['b', 'd', 'a', 'c'])
})

test('a linear flow begins with its first task only', () => {
  const tasks = ['a', 'b'].map((name) => task(name, { execute: () => undefined }))
  expect(up(new ReadyFrontier(compile(linear('f', input(), ...tasks)).nodes))).toEqual(['a'])
})
