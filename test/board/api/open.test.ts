/** What `openBoard` refuses, by name and before there is a session, without printing secrets; and what it understands. */
import { describe, expect, test } from 'vitest'
import { openBoard } from '../../../src/board/index.ts'
import { ACL } from '../../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { rejectionOf } from '../events.ts'

const NOBODY = 'zookeeper://127.0.0.1:1/board'
const loosely = openBoard as (uri: unknown, options?: unknown) => Promise<unknown>
const SECRET = 'hunter2'

describe('options of openBoard', () => {
  test.each<[what: string, options: unknown, says: string]>([
    ['an identity without its list', { auth: { scheme: 'digest', auth: `ada:${SECRET}` } }, 'auth must be a list of'],
    ['an identity that is a text', { auth: [`ada:${SECRET}`] }, 'auth must be a list of identities'],
    ['an identity without a secret', { auth: [{ scheme: 'digest' }] }, 'auth must be a list of identities'],
    ['a digest without a colon', { auth: [{ scheme: 'digest', auth: SECRET }] }, "'user:password', with a colon"],
    ['bytes without a colon', { auth: [{ scheme: 'digest', auth: Buffer.from(SECRET) }] }, 'with a colon'],
    ['an acl that is a word', { acl: 'creator' }, 'acl must be a list of entries, such as ACL.creatorAll'],
    ['the console as a log', { log: console }, 'log must be a pino logger, as in log: pino()'],
    ['create that is a text', { create: 'no' }, 'openBoard: create must be true or false'],
    ['a signal that is none', { signal: 5 }, 'signal must be an AbortSignal'],
  ])('%s is refused', async (_, options, says) => {
    const failure = await rejectionOf(loosely(NOBODY, options))
    expect(failure).toMatchObject({ code: 'JOBBOARD_INVALID_ARGUMENT', message: expect.stringContaining(says) })
    expect(String(failure)).not.toContain(SECRET)
  })
})

test.each<[what: string, uri: string, options: unknown, says: string]>([
  ['sasl with an unknown field', NOBODY, { sasl: { user: 'ada' } }, 'sasl has no option "user"'],
  ['a cert without its key', NOBODY, { tls: { cert: 'x' } }, 'cert needs its key'],
  ['a # in a password', `zookeeper://ada:${SECRET}#@127.0.0.1:1/x`, {}, 'write %23 for a # in it'],
  [
    'ticks longer than the session',
    `${NOBODY}?sessionTimeout=3s&tick=4s`,
    {},
    'tick must not be longer than sessionTimeout',
  ],
  ['the parameter of a former client', `${NOBODY}?client=native`, {}, 'remove the parameter client'],
  ['ticks longer than the default', `${NOBODY}?tick=11s`, {}, 'sessionTimeout (10000 ms by default)'],
  ['the console as a log', 'memory:', { log: console }, 'log must be a pino logger'],
  ['an identity on a board of this process', 'memory:', { auth: [{ scheme: 'digest', auth: 'a:b' }] }, 'omit auth'],
])('%s is refused', async (_, uri, options, says) => {
  const failure = await rejectionOf(loosely(uri, options))
  expect(failure).toMatchObject({ code: 'JOBBOARD_INVALID_ARGUMENT', message: expect.stringContaining(says) })
  expect(String(failure)).not.toContain(SECRET)
})

test('an empty list of identities in the options is accepted', async () => {
  await using board = await openBoard('memory:', { auth: [] })
  expect(board.connected).toBe(true)
})

describe.skipIf(!zookeeperHosts)('on ZooKeeper', () => {
  test('a chroot with and without its slash is the same, as are milliseconds and their unit, a text and a URL', async () => {
    const chroot = namespace('chroot').slice(1)
    const [host] = zookeeperHosts.split(',')
    const at = (parameters: string) => `zookeeper://${host}/board?chroot=${parameters}`
    await using one = await openBoard(at(`/${chroot}&sessionTimeout=10000`), { auth: [], acl: ACL.open })
    await using other = await openBoard(new URL(at(`${chroot}/&sessionTimeout=10s`)))
    const job = await one.post('flow', {})
    expect((await other.find(job.uuid)).uuid).toBe(job.uuid)
  })
})
