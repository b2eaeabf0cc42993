import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { FlowOutline, OutlineNode } from '../../../src/flow/index.ts'
import { input, layoutFlow, linear, task, toSvg, unordered } from '../../../src/flow/index.ts'
import { usual as test, variant } from '../../variant.ts'

const make = (name: string) => task(name, { execute: () => name })

/** Outlines with any names and edges from a node to later ones. */
const outlines = fc
  .array(
    fc.record({
      name: fc.option(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ minLength: 50, maxLength: 3_000 })), {
        nil: undefined,
      }),
      kind: fc.constantFrom('task', 'retry'),
      inner: fc.option(fc.constantFrom('a', 'b', ''), { nil: undefined }),
      after: fc.array(fc.nat(30)),
    }),
    { maxLength: 40 },
  )
  .map((parts): FlowOutline => {
    const nodes = parts.map(({ name, kind, inner, after }, index): OutlineNode => {
      const next = [...new Set(after.map((step) => index + 1 + step).filter((to) => to < parts.length))]
      return {
        ...(name === undefined ? {} : { name, kind: kind as 'task' | 'retry' }),
        ...(inner === undefined ? {} : { flow: inner }),
        next,
        decides: next.slice(0, 1),
      }
    })
    return { name: 'f', version: '1.0', digest: 'd', nodes }
  })

function row(count: number, inner?: (index: number) => string): FlowOutline {
  const nodes = Array.from({ length: count }, (_, index): OutlineNode => {
    const next = index + 1 < count ? { next: [index + 1] } : {}
    return { name: `t${index}`, kind: 'task', ...(inner ? { flow: inner(index) } : {}), ...next }
  })
  return { name: 'row', version: '1.0', digest: 'd', nodes }
}

/** Returns an outline whose nodes are followed by each node of a list. */
function dense(count: number, followers: (index: number) => readonly number[]): FlowOutline {
  const nodes = Array.from({ length: count }, (_, index): OutlineNode => {
    return { name: `t${index}`, kind: 'task', next: followers(index).filter((to) => to < count) }
  })
  return { name: 'dense', version: '1.0', digest: 'd', nodes }
}

const upTo = (count: number, first: number) => Array.from({ length: count }, (_, n) => first + n)

describe('layoutFlow', () => {
  // By dagre the first takes 11 s, the second 48 s, and the last minutes.
  test.each([
    ['three layers of 40', dense(120, (index) => upTo(40, (Math.floor(index / 40) + 1) * 40))],
    ['all edges of 60 nodes', dense(60, (index) => upTo(60, index + 1))],
    ['a chain with many long edges', dense(490, (index) => [index + 1, 489, 488, 487].filter((to) => to > index))],
    [
      'a node with 1,900 before it',
      dense(1_902, (index) => (index === 0 ? upTo(1_900, 1) : [1_901].filter((to) => to > index))),
    ],
  ])('%s are placed in layers, at once', async (_, outline) => {
    const { user } = process.cpuUsage()
    const { nodes, edges } = await layoutFlow(outline)
    expect(nodes).toHaveLength(outline.nodes.length)
    expect(edges.length).toBeGreaterThan(0)
    expect((process.cpuUsage().user - user) / 1_000).toBeLessThan(5_000)
  })

  test('a flow with too many edges is refused', async () => {
    await expect(layoutFlow(dense(200, (index) => upTo(200, index + 1)))).rejects.toThrow('at most 10000 are drawn')
  })

  variant('each part has a place within the picture, no two share one, and each edge is a line', async () => {
    await fc.assert(
      fc.asyncProperty(outlines, async (outline) => {
        const { width, height, nodes, edges } = await layoutFlow(outline)
        expect(nodes).toHaveLength(outline.nodes.length)
        for (const node of nodes) {
          expect(node.x - node.width / 2).toBeGreaterThanOrEqual(0)
          expect(node.x + node.width / 2).toBeLessThanOrEqual(width)
          expect(node.y - node.height / 2).toBeGreaterThanOrEqual(0)
          expect(node.y + node.height / 2).toBeLessThanOrEqual(height)
        }
        for (const [index, a] of nodes.entries())
          for (const b of nodes.slice(index + 1)) {
            const apart =
              Math.abs(a.x - b.x) >= (a.width + b.width) / 2 || Math.abs(a.y - b.y) >= (a.height + b.height) / 2
            expect(apart).toBe(true)
          }
        expect(edges).toHaveLength(outline.nodes.reduce((sum, { next = [] }) => sum + next.length, 0))
        for (const { points } of edges) expect(points.length).toBeGreaterThanOrEqual(2)
      }),
      { numRuns: 60 },
    )
  })

  test('parts that follow are below; a decided edge says so; an isolated task and a retry keep their kinds', async () => {
    const flow = linear(
      'f',
      input(),
      make('first'),
      unordered('both', input(), make('left'), make('right')),
      make('last'),
    )
    const { nodes, edges, collapsed } = await layoutFlow(flow)
    expect(collapsed).toBe(false)
    const find = (name: string) => nodes.find((node) => node.name === name)
    expect(find('first')?.y).toBeLessThan(find('left')?.y ?? 0)
    expect(find('left')?.y).toBe(find('right')?.y)
    expect(find('left')?.flow).toBe('both')
    expect(edges.every(({ kind }) => kind === 'next')).toBe(true)
  })

  test('above 500 atoms, each inner flow is one node with the names of its atoms', async () => {
    const { nodes, edges, collapsed } = await layoutFlow(row(600, (index) => `part ${Math.floor(index / 100)}`))
    expect(collapsed).toBe(true)
    expect(nodes.map(({ name, kind, atoms }) => [name, kind, atoms?.length])).toEqual(
      [0, 1, 2, 3, 4, 5].map((part) => [`part ${part}`, 'flow', 100]),
    )
    expect(edges).toHaveLength(5)
  })

  test('a flow of 2,000 atoms without inner flows is placed in layers; one more is refused by name', async () => {
    const { nodes } = await layoutFlow(row(2_000))
    expect(new Set(nodes.map(({ y }) => y)).size).toBe(2_000)
    await expect(layoutFlow(row(2_001))).rejects.toThrow(
      'flow row cannot be drawn: it has 2001 parts, and at most 2000',
    )
  })

  test('a wide layer takes several rows', async () => {
    const wide: FlowOutline = {
      ...row(0),
      nodes: Array.from({ length: 900 }, (_, index) => ({ name: `task number ${index}`, kind: 'task' as const })),
    }
    const { width, nodes } = await layoutFlow(wide)
    expect(width).toBeLessThanOrEqual(4_100)
    expect(new Set(nodes.map(({ x, y }) => `${x} ${y}`)).size).toBe(900)
  })

  test('long names are shortened in their middle, and characters that act on a terminal are replaced', async () => {
    const names = ['x'.repeat(10_000), `from ${'y'.repeat(80)} to`, '\u001b[31mred\n', '\ud800', '']
    const { nodes } = await layoutFlow({ ...row(0), nodes: names.map((name) => ({ name, kind: 'task' as const })) })
    expect(nodes.map(({ label }) => label)).toEqual([
      `${'x'.repeat(15)}…${'x'.repeat(16)}`,
      `from ${'y'.repeat(10)}…${'y'.repeat(13)} to`,
      '\ufffd[31mred\ufffd',
      '\ufffd',
      '',
    ])
  })
})

describe('toSvg', () => {
  test('writes nodes with their states, and escapes what XML cannot hold', async () => {
    const hostile = '<img src=x onerror="alert(1)">&\u0000'
    const outline: FlowOutline = {
      ...row(0),
      name: 'a "flow"',
      nodes: [
        { name: hostile, kind: 'task', next: [1, 2], decides: [1] },
        { name: 'again', kind: 'retry' },
        { next: [] },
      ],
    }
    const svg = await toSvg(outline, { states: { again: 'RETRYING' } })
    expect(svg).toContain('aria-label="flow a &quot;flow&quot; 1.0"')
    expect(svg).toContain('&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;\ufffd')
    expect(svg).not.toContain('<img')
    expect(svg).toContain('class="node retry RETRYING"')
    expect(svg).toContain('<title>again, RETRYING</title>')
    expect(svg).toContain('class="edge decided"')
    expect(svg).toContain('class="point"')
  })

  test('an inner flow that is one node shows the state that needs a look first', async () => {
    const outline = row(600, (index) => (index < 300 ? 'one' : 'two'))
    const svg = await toSvg(outline, { states: { t1: 'SUCCESS', t2: 'FAILURE', t400: 'SUCCESS' } })
    expect(svg).toContain('<title>one, 300 atoms, FAILURE</title>')
    expect(svg).toContain('<title>two, 300 atoms, SUCCESS</title>')
  })
})
