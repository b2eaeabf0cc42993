/** The text of arrays as Postgres parses it. */
import { expect, test } from 'vitest'
import { arrayLiteral } from '../../src/postgres/index.ts'

test.each([
  [[], '{}'],
  [[1, -2.5, 7n, Number.NaN, Number.POSITIVE_INFINITY], '{1,-2.5,7,NaN,Infinity}'],
  [[null, undefined, true, false], '{NULL,NULL,true,false}'],
  [['', 'NULL', 'a,b', '{x}', 'line\nline'], '{"","NULL","a,b","{x}","line\nline"}'],
  [['say "hi"', 'back\\slash', '\\"'], '{"say \\"hi\\"","back\\\\slash","\\\\\\""}'],
  [[Buffer.from([0, 255]), new Uint8Array()], '{"\\\\x00ff","\\\\x"}'],
])('%o is written as %s', (elements, literal) => {
  expect(arrayLiteral(elements)).toBe(literal)
})
