/** Values that boards allow and JSON does not have are shown everywhere, as text or plain data. */
import { expect, test } from 'vitest'
import { toPrintableJson } from '../../src/cli/output/render/text.ts'
import { toJson } from '../../src/core/json.ts'

test.each([
  [{ n: 5n }, '{"n":"5"}'],
  [{ n: Number.NaN, i: Number.NEGATIVE_INFINITY }, '{"n":"NaN","i":"-Infinity"}'],
  [new Map([['a', 1n]]), '[["a","1"]]'],
  [{ s: new Set([1n]) }, '{"s":["1"]}'],
  [{ b: Buffer.from('ab'), u: new Uint8Array([97]) }, '{"b":"YWI=","u":"YQ=="}'],
  [[new Date(0), new Date(Number.NaN)], '["1970-01-01T00:00:00.000Z",null]'],
  [new URL('http://a.example/'), '"http://a.example/"'],
  [undefined, 'null'],
])('%o is shown as %s', (value, text) => {
  expect(toJson(value)).toBe(text)
  expect(toPrintableJson(value)).toBe(text)
})
