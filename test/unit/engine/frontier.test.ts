import { describe, expect, test } from 'vitest'
import { Frontier } from '../../../src/engine/frontier.ts'
import { type ExecutionGraph, type ExecutionNode, task } from '../../../src/flow/index.ts'

const names = (nodes: (ExecutionNode | undefined)[]) => nodes.map((node) => node?.atom.name)

function graphOf(edges: Record<string, readonly string[]>): ExecutionGraph {
  const drafts = Object.keys(edges).map((name) => ({
    name,
    node: {
      atom: { ...task(name, { execute: () => undefined }), revert: undefined },
      predecessors: [] as ExecutionNode[],
      successors: [] as ExecutionNode[],
      sources: new Map<string, ExecutionNode>(),
    },
  }))
  const byName = new Map(drafts.map(({ name, node }) => [name, node]))
  for (const { name, node } of drafts) {
    for (const before of edges[name] ?? []) {
      const found = byName.get(before)
      if (!found) throw new Error(before)
      node.predecessors.push(found)
      found.successors.push(node)
    }
  }
  return { nodes: drafts.map(({ node }) => node), byName }
}

describe('a frontier', () => {
  const diamond = { top: [], left: ['top'], right: ['top'], bottom: ['left', 'right'] }

  test('lets a node come up when all before it are settled', () => {
    const frontier = new Frontier(graphOf(diamond), 'forwards')
    const top = frontier.take()
    expect(names([top, frontier.take()])).toEqual(['top', undefined])
    if (top) frontier.settle(top)
    const [left, right] = [frontier.take(), frontier.take()]
    expect(names([left, right])).toEqual(['left', 'right'])
    if (left) frontier.settle(left)
    expect(frontier.take()).toBe(undefined)
    if (right) frontier.settle(right)
    expect(names([frontier.take(), frontier.take()])).toEqual(['bottom', undefined])
  })

  test('goes backwards as well, the last first', () => {
    const frontier = new Frontier(graphOf(diamond), 'backwards')
    const order: string[] = []
    for (let node = frontier.take(); node; node = frontier.take()) {
      order.push(node.atom.name)
      frontier.settle(node)
    }
    expect(order[0]).toBe('bottom')
    expect(order[3]).toBe('top')
    expect(order).toHaveLength(4)
  })

  test('of a flow without tasks has none', () => {
    expect(new Frontier({ nodes: [], byName: new Map() }, 'forwards').take()).toBe(undefined)
  })
})
