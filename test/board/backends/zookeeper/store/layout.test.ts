import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeNodeName, ZooKeeperLayout } from '../../../../../src/board/backends/zookeeper/store/layout.ts'
import { checkPath } from '../../../../../src/zookeeper/index.ts'

const texts = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: fc.constantFrom('.', '~', '/', '%', '2', 'E', '7', 'e', '\ud800', '\udc00', '\ufffd', ' ', 'ü') }),
  fc.string({ minLength: 190, maxLength: 400 }),
)

describe('the name of a znode', () => {
  test('is one that ZooKeeper takes, for any text', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const name = encodeNodeName(text)
        expect(name).not.toContain('/')
        expect(name.length).toBeLessThanOrEqual(200)
        expect(() => checkPath(`/${name}`)).not.toThrow()
      }),
      { numRuns: 2_000 },
    )
  })

  test('is never that of another text', () => {
    fc.assert(
      fc.property(texts, texts, (one, other) => {
        expect(encodeNodeName(one) === encodeNodeName(other)).toBe(one === other)
      }),
      { numRuns: 5_000 },
    )
    const alike = [
      '',
      '.',
      '..',
      '%2E',
      '.%2E',
      '~',
      '%7E',
      encodeNodeName(''),
      encodeNodeName('x'.repeat(300)),
      'x'.repeat(300),
    ]
    const halves = ['\ud800', '\ud801', '\udc00', '\ufffd', 'a\ud800', '\ud800a']
    const all = [...alike, ...halves]
    expect(new Set(all.map(encodeNodeName)).size).toBe(new Set(all).size)
  })
})

describe('the layout', () => {
  test("keeps a client's markers beside the board, outside what is watched", () => {
    expect(new ZooKeeperLayout('/a/jobs').marker('x')).toBe('/a/.jobs-sessions/x')
    expect(new ZooKeeperLayout('/jobs').marker('x')).toBe('/.jobs-sessions/x')
  })

  test("reads watch events as changes, and passes over what is none of the board's business", () => {
    const layout = new ZooKeeperLayout('/board')
    const id = 'job0000000042'
    const changes = layout.toChanges([
      { type: 'created', path: `/board/${id}` },
      { type: 'dataChanged', path: `/board/${id}` },
      { type: 'created', path: `/board/${id}.lock` },
      { type: 'dataChanged', path: `/board/${id}.lock` },
      { type: 'deleted', path: `/board/${id}.lock` },
      { type: 'created', path: `/board/.trash/${id}` },
      { type: 'deleted', path: `/board/.trash/${id}` },
      { type: 'deleted', path: `/board/${id}` },
      { type: 'dataChanged', path: '/board' },
      { type: 'created', path: '/board/job42' },
      { type: 'created', path: `/board/${id}/child` },
      { type: 'created', path: '/board/.entities/conductor/one' },
      { type: 'created', path: `/board/${id}x` },
    ])
    expect(changes.map(({ kind }) => kind)).toEqual(['posted', 'updated', 'claimed', 'released', 'trashed', 'gone'])
    expect(new Set(changes.map((change) => change.id))).toEqual(new Set([id]))
  })
})
