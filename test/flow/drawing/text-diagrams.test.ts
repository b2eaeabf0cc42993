import { expect, test } from 'vitest'
import { graph, input, linear, link, task, times, toDot, toMermaid, unordered } from '../../../src/flow/index.ts'

const make = (name: string) => task(name, { execute: () => name })
const [start, left, right, end] = ['start', 'left', 'a "right"', 'end'].map(make)
if (!start || !left || !right || !end) throw new Error('four tasks')
const side = unordered({ name: 'side', retry: times(2, { name: 'twice' }) }, input(), left, right)
const flow = linear('f', input(), start, side, end)
const states = { start: 'SUCCESS', twice: 'RETRYING' } as const

test('toMermaid draws atoms, where they meet, and their states', () => {
  expect(toMermaid(flow, { states })).toBe(`flowchart TD
  n0["start"]:::SUCCESS
  n1{{"twice"}}:::RETRYING
  n2["left"]
  n3["a #quot;right#quot;"]
  n4(( ))
  n5["end"]
  n0 --> n1
  n1 --> n2
  n1 --> n3
  n2 --> n4
  n3 --> n4
  n4 --> n5
  classDef SUCCESS fill:#a6e3a1,stroke:#555555,color:#000000
  classDef RETRYING fill:#d7b8ff,stroke:#555555,color:#000000
`)
})

test('toDot draws the same', () => {
  const dot = toDot(flow, { states })
  expect(dot).toContain('digraph "f" {')
  expect(dot).toContain('  n3 [label="a \\"right\\""]')
  expect(dot).toContain('  n1 [label="twice", shape=hexagon, fillcolor="#d7b8ff", tooltip="RETRYING"]')
  expect(dot).toContain('  n4 -> n5')
})

test('edges with a decider are drawn differently from others; nothing is joined at the edge of the picture', () => {
  const links = [link(start, left, { decider: () => true }), link(start, end)]
  expect(toMermaid(graph({ name: 'g', links }, input(), start, left, end))).toBe(`flowchart TD
  n0["start"]
  n1["left"]
  n2["end"]
  n0 -. decides .-> n1
  n0 --> n2
`)
})
