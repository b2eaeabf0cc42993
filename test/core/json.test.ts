import { describe, expect, test } from 'vitest'
import { YamlDocument } from '../../src/cli/input/config/document.ts'
import { InvalidArgument } from '../../src/core/errors.ts'
import { isExactNumber, parseJson } from '../../src/core/json.ts'

describe('foreign JSON', () => {
  test.each([
    '{"id":9007199254740991,"n":-0.1,"e":1e22,"big":10000000000000000000000,"zero":0.0,"list":[1,{"a":{"a":1}}]}',
    '"a text with 12345678901234567890, \\"a\\":1,\\"a\\":2 and {"',
    '{"a\\\\":1,"a\\"":2,"a":[{"a":1},{"a":1}]}',
    ' [ ] ',
  ])('%s is parsed as JSON.parse does', (text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text))
  })

  test.each([
    [
      '{"id":12345678901234567890}',
      'has a number that JavaScript cannot represent, at character 7: write it as a text, in quotes',
    ],
    ['[1, 9007199254740993]', 'cannot represent, at character 5'],
    ['{"n":1e400}', 'cannot represent, at character 6'],
    ['[-1e400]', 'cannot represent'],
    ['[1e-400]', 'cannot represent'],
    [`[${'9'.repeat(100_000)}]`, 'cannot represent'],
    ['{"a":1,"b":{"c":"}"},"\\u0061":2}', 'has the same key twice in one object, at character 22'],
    ['{"x":[{"__proto__":{}}]}', 'has a key __proto__, at character 8'],
    ['{secret', 'is not JSON'],
    ['', 'is not JSON'],
  ])('%s is refused', (text, message) => {
    expect(() => parseJson(text)).toThrow(InvalidArgument)
    expect(() => parseJson(text)).toThrow(message)
  })

  test('of any size and depth is parsed in linear time, without a stack', () => {
    const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`
    expect(parseJson(`{"deep":${deep},"text":"${'\\\\'.repeat(1_000_000)}"}`)).toHaveProperty('text')
  })
})

test('an exact number is one that JavaScript prints as the same value', () => {
  const exact = ['0', '-0', '0e5', '3.14159265358979323846', '1e308', '+7', '9007199254740992']
  expect(exact.filter((text) => !isExactNumber(text))).toEqual([])
  expect(['9007199254740993', '1e309', '0.1e-400', '-98765432109876543210'].filter(isExactNumber)).toEqual([])
})

test('a number of a configuration file that JavaScript cannot represent is a fault of the file', () => {
  const faultsOf = (text: string) => new YamlDocument(text, { shown: 'jobboard.yaml' }).faults
  expect(faultsOf('store:\n  id: 12345678901234567890\n')).toEqual([
    expect.stringMatching(/^jobboard\.yaml:2:7: JavaScript cannot represent this number: put it in quotes/),
  ])
  expect(faultsOf('a: 0x1F\nb: 1.5\nc: "12345678901234567890"\nd: .inf\ne: 007\n')).toEqual([])
})
