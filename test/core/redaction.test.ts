import fc from 'fast-check'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { redactedLog } from '../../src/core/log.ts'
import { REDACTED, Redactor } from '../../src/core/redaction.ts'
import { count } from '../support/counts.ts'
import { variant } from '../variant.ts'

const redaction = new Redactor(['password', 'api-key', 'authorization'])

describe('data', () => {
  test('loses what stands under such a key, at any depth, in any spelling', () => {
    const at = new Date(7)
    const data = {
      password: 'hunter2',
      user: { Password: { old: 'hunter1' }, name: 'ada', list: [{ API_KEY: 1 }, { apiKey: null }, at] },
      passwords: 2,
      bytes: Uint8Array.of(1),
    }
    expect(redaction.value(data)).toEqual({
      password: '[redacted]',
      user: {
        Password: '[redacted]',
        name: 'ada',
        list: [{ API_KEY: '[redacted]' }, { apiKey: '[redacted]' }, at],
      },
      passwords: 2,
      bytes: Uint8Array.of(1),
    })
    expect(data.user.Password.old).toBe('hunter1')
  })

  test('may contain itself, or have a __proto__', () => {
    const loop: Record<string, unknown> = { password: 'hunter2' }
    loop['self'] = loop
    expect(redaction.value(loop)).toEqual({ password: '[redacted]', self: '[too deep]' })
    const odd: unknown = redaction.value(JSON.parse('{"__proto__":{"password":"hunter2"}}'))
    expect(JSON.stringify(odd)).toBe('{"__proto__":{"password":"[redacted]"}}')
  })
})

test.each([
  ['password=hunter2 was wrong', 'password=[redacted] was wrong'],
  ['login {"user":"ada","password":"hun\\"ter2"} failed', 'login {"user":"ada","password":[redacted]'],
  ["{ password: 'hunter2', user: 'ada' }", "{ password: [redacted], user: 'ada' }"],
  [String.raw`body "{\"password\":\"hunter2\",\"user\":1}"`, String.raw`body "{\"password\":[redacted],\"user\":1}"`],
  ['Authorization: Bearer hunter2\nHost: x', 'Authorization: [redacted]\nHost: x'],
  ['?api_key=hunter2&user=ada', '?api_key=[redacted]&user=ada'],
  ['"apiKey": {"id": 1, "secret": "hunter2"}, more', '"apiKey": [redacted]'],
  ['the password was wrong', 'the password was wrong'],
  ['mypassword=x', 'mypassword=x'],
])('the text %j', (text, shown) => {
  expect(redaction.text(text).startsWith(shown)).toBe(true)
  expect(redaction.text(text)).not.toMatch(/hunter|ter2/)
})

test.each([
  'password=hunter2 was wrong',
  'login {"user":"ada","password":"hunter2"} failed, password="hunter2"x, user=ada',
  String.raw`body "{\"password\":\"hunter2\",\"user\":1}" was refused`,
  "{ password: 'hunter2', user: 'ada' } Authorization: Bearer hunter2\nHost: x",
])('a redacted text stays as it is: %j', (text) => {
  const once = redaction.text(text)
  expect(redaction.text(once)).toBe(once)
})

variant('a text may be redacted as often as one likes', () => {
  const parts = ['password', 'apiKey', '=', ':', ' ', '"', "'", '\\"', '{', '}', '[', ']', ',', '\n', 'x', REDACTED]
  const texts = fc.array(fc.constantFrom(...parts), { maxLength: 12 }).map((chosen) => chosen.join(''))
  fc.assert(
    fc.property(texts, (text) => {
      const once = redaction.text(text)
      expect(redaction.text(once)).toBe(once)
    }),
    { numRuns: count({ test: 1_000, long: 100_000 }) },
  )
})

test('what is no list of names is refused; an empty list hides nothing', () => {
  for (const wrong of ['password', [''], ['-'], [1], undefined]) {
    const given = wrong as string[]
    expect(() => new Redactor(given)).toThrow(InvalidArgument)
  }
  expect(new Redactor([]).text('password=x')).toBe('password=x')
  expect(new Redactor(['a.b(c']).text('a.b(c=hunter2 abc=1')).toBe('a.b(c=[redacted] abc=1')
})

test('a log does not say them: in facts, bindings, messages, errors and their causes', () => {
  const lines: string[] = []
  const target = pino({ level: 'info' }, { write: (line: string) => lines.push(line) })
  const log = redactedLog(target, redaction)
  log.info({ user: { password: 'hunter2' } }, 'login')
  log.info('password=%s', 'hunter2')
  log.info('given %j', { password: 'hunter2' })
  log.child({ password: 'hunter2', job: 7 }).child({ more: 1 }).warn('child')
  const cause = Object.assign(new Error('password=hunter2'), { config: { authorization: 'hunter2' } })
  const error = Object.assign(new Error('{"password":"hunter2"}', { cause }), { password: 'hunter2' })
  log.error(error)
  log.error({ err: error, nested: { error } }, 'failed')
  log.error(error, 'failed password=hunter2')
  log.debug({ password: 'hunter2' }, 'not logged')
  expect(lines).toHaveLength(7)
  expect(lines.slice(0, 1).concat(lines.slice(2)).join()).not.toContain('hunter2')
  expect(JSON.parse(lines[3] ?? '')).toMatchObject({ job: 7, more: 1, msg: 'child', level: 40 })
  expect(JSON.parse(lines[4] ?? '')).toMatchObject({ err: { type: 'Error', stack: expect.any(String) }, level: 50 })
  expect(JSON.parse(lines[5] ?? '')).toMatchObject({ msg: 'failed', err: { password: '[redacted]' } })
  expect(log.level).toBe('info')
})
