/** Who is let in to the dashboard: requests without a sign-in, sign-ins with wrong passwords, reads from other sites. */
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { toAccess } from '../../src/cli/ui/access.ts'
import type { Logger } from '../../src/core/log.ts'
import { openBoard, schedule } from '../../src/index.ts'
import { basicAccess, dashboard, passwordLine, tokenAccess } from '../../src/ui/index.ts'
import { LOCAL, ORIGIN, openClient, serve } from './client.ts'

let board: Awaited<ReturnType<typeof openBoard>>

beforeEach(async () => {
  board = await openBoard('memory:')
})
afterEach(() => board.close())

function logged() {
  const lines: Record<string, unknown>[] = []
  const log: Logger = pino(
    { base: null, timestamp: false },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  )
  return { log, lines }
}

const session = (headers: Record<string, string> = {}) => new Request(`${ORIGIN}/api/v1/session`, { headers })

describe('without a sign-in', () => {
  test.each(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])('%s is this machine', async (address) => {
    const opened = dashboard({ board })
    expect((await opened.fetch(session(), { address })).status).toBe(200)
    await opened.close()
  })

  test.each(['10.0.0.7', '::ffff:10.0.0.7', '2001:db8::1', '127.0.0.1.evil.example', 'localhost.evil', '', undefined])(
    'the address %j is refused, whatever the Host header says',
    async (address) => {
      const opened = dashboard({ board })
      for (const host of ['localhost', '127.0.0.1', '[::1]:7411']) {
        const answer = await opened.fetch(session({ host }), { address })
        expect([answer.status, Object(await answer.json()).code]).toEqual([403, 'FORBIDDEN'])
        const page = await opened.fetch(new Request(`${ORIGIN}/`, { headers: { host } }), { address })
        expect(page.status).toBe(403)
      }
      expect((await opened.fetch(session())).status).toBe(403)
      await opened.close()
    },
  )

  test.each([
    ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'X-Forwarded-Anything', 'forwarded', 'via'],
    ...['x-real-ip', 'true-client-ip', 'cf-connecting-ip', 'x-client-ip'],
    ...[
      'X-Envoy-External-Address',
      'X-Original-Forwarded-For',
      'fly-client-ip',
      'x-cluster-client-ip',
      'x-azure-clientip',
    ],
  ])('a request with the header %s has come through a proxy, and is refused', async (header) => {
    const opened = dashboard({ board })
    expect((await opened.fetch(session({ [header]: '127.0.0.1' }), LOCAL)).status).toBe(403)
    await opened.close()
  })

  test("Node's server says the address by itself", async () => {
    const opened = dashboard({ board })
    await using server = await serve(opened.node)
    expect((await fetch(`${server.url}/api/v1/session`)).status).toBe(200)
    expect((await fetch(`${server.url}/api/v1/session`, { headers: { 'x-real-ip': '10.0.0.7' } })).status).toBe(403)
    await opened.close()
  })

  test('--auth none is the same, and goes with no name for other machines', async () => {
    const context = { env: {}, cwd: '/' }
    const { authorize } = await toAccess({ auth: 'none' }, context)
    const opened = dashboard({ board, ...(authorize ? { authorize } : {}), allowedHosts: ['jobs.example.com'] })
    expect((await opened.fetch(session(), { address: '10.0.0.7' })).status).toBe(403)
    expect((await opened.fetch(session(), LOCAL)).status).toBe(200)
    await opened.close()
    await expect(toAccess({ auth: 'none', allowedHost: ['jobs.example.com'] }, context)).rejects.toThrow(
      '--auth none is for this machine only',
    )
  })
})

describe('wrong passwords', () => {
  const basic = (name: string, password: string) => ({
    authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`,
  })
  const open = async (log: Logger) => {
    const authorize = basicAccess(await passwordLine('ada', 'correct horse', { level: 'read' }))
    return dashboard({ board, authorize, log })
  }

  test('in flight keep nobody else from signing in', async () => {
    const opened = await open(logged().log)
    const guesses = Array.from({ length: 300 }, (_, n) =>
      opened.fetch(session(basic('ada', `guess ${n}`)), { address: '10.0.0.66' }),
    )
    expect((await opened.fetch(session(basic('ada', 'correct horse')), { address: '10.0.0.7' })).status).toBe(200)
    expect(new Set((await Promise.all(guesses)).map(({ status }) => status))).toEqual(new Set([401, 429]))
    await opened.close()
  })

  test('lock their address, and no other; each is logged without the password, and so is the lock', async () => {
    const { log, lines } = logged()
    const opened = await open(log)
    const guess = async (address: string, n: number) =>
      (await opened.fetch(session(basic('ad\na', `guess ${n}`)), { address })).status
    const statuses: number[] = []
    for (let n = 0; n < 22; n += 1) statuses.push(await guess(`2001:db8::${n + 1}`, n))
    expect(statuses).toEqual([...Array.from({ length: 20 }, () => 401), 429, 429])
    const right = (address: string) => opened.fetch(session(basic('ada', 'correct horse')), { address })
    expect((await right('2001:db8::99')).status).toBe(429)
    expect((await right('2001:db8:0:1::1')).status).toBe(200)
    // A person who is known already is not locked out by others of the address.
    expect((await right('2001:db8::99')).status).toBe(200)
    const text = JSON.stringify(lines)
    expect(text).not.toMatch(/guess|correct/)
    expect(lines.filter(({ msg }) => msg === 'dashboard: a sign-in was refused')).toHaveLength(20)
    expect(lines[0]).toMatchObject({ level: 40, address: '2001:db8::1', by: 'password', user: 'ad?a' })
    expect(text).toContain('is locked for a minute after 20 wrong passwords')
    await opened.close()
  })

  test('a wrong token is logged, too, and a request without one is not', async () => {
    const { log, lines } = logged()
    const opened = dashboard({ board, log, authorize: tokenAccess('x'.repeat(32), { level: 'read' }) })
    await opened.fetch(session(), LOCAL)
    expect(lines).toEqual([])
    await opened.fetch(session({ authorization: 'Bearer guessed' }), LOCAL)
    await opened.fetch(new Request(`${ORIGIN}/?token=guessed`), LOCAL)
    expect(lines.map(({ by }) => by)).toEqual(['token', 'link'])
    expect(JSON.stringify(lines)).not.toContain('guessed')
    await opened.close()
  })
})

test('reads that another site has caused are refused', async () => {
  const opened = dashboard({ board })
  const status = async (site: string, path = '/api/v1/boards/main/overview') =>
    (await opened.fetch(new Request(`${ORIGIN}${path}`, { headers: { 'sec-fetch-site': site } }), LOCAL)).status
  for (const path of ['/api/v1/boards/main/overview', '/api/v1/session', '/api/v1/boards/main/events'])
    for (const site of ['cross-site', 'same-site', 'nonsense']) expect(await status(site, path), path).toBe(403)
  for (const site of ['same-origin', 'none']) expect(await status(site)).toBe(200)
  // A link on another site still opens the page.
  expect(await status('cross-site', '/')).toBe(200)
  await opened.close()
})

test('over TLS the cookie is of this host alone', async () => {
  const token = 'x'.repeat(32)
  const opened = dashboard({ board, allowedHosts: ['*'], authorize: tokenAccess(token, { level: 'read' }) })
  for (const [url, headers] of [
    [`https://jobs.example.com/ops/?token=${token}`, {}],
    [`http://jobs.example.com/ops/?token=${token}`, { 'x-forwarded-proto': 'https' }],
  ] as const) {
    const cookie = (await opened.fetch(new Request(url, { headers }))).headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^__Host-jobboard_\w+=[\w-]+; Path=\/; HttpOnly; SameSite=Strict; Secure$/)
    const known = { cookie: cookie.split(';')[0] ?? '' }
    expect((await opened.fetch(new Request(`${ORIGIN}/ops/api/v1/session`, { headers: known }))).status).toBe(200)
  }
  await opened.close()
})

test('a person who has signed in is named by pauses, limits, holds, schedules and cancelled jobs, not this process', async () => {
  const authorize = () => ({ who: 'ada', level: 'admin' }) as const
  await using client = openClient({ board, authorize })
  expect((await client.post('/boards/main/pause', { reason: 'the database moves' })).status).toBe(200)
  const { body } = await client.get<{ boards: unknown[] }>('/session')
  expect(body.boards).toMatchObject([{ paused: true, pause: { by: 'ada', reason: 'the database moves' } }])
  await client.post('/boards/main/limits', { action: 'set', key: 'api', concurrency: 2 })
  await client.post('/boards/main/limits', { action: 'stop', key: 'api' })
  expect(await board.limits.show('api')).toMatchObject({ set: { by: 'ada' }, held: { by: 'ada' } })
  await board.schedules.put(schedule('nightly', { cron: '0 3 * * *' }, 'import', {}))
  await client.post('/boards/main/schedules', { id: 'nightly', action: 'pause' })
  expect((await board.schedules.show('nightly')).paused).toMatchObject({ by: 'ada' })
  const job = await board.post('import', {})
  await client.post(`/boards/main/jobs/${job.uuid}/cancel`, { reason: 'wrong file' })
  for await (const { reason } of board.trashed()) expect(reason).toContain('cancelled by ada')
})

test('what is redacted is in no text of a row, in no suggestion, and cannot be found by a search', async () => {
  await using client = openClient({ board, redact: ['password'], authorize: () => ({ who: 'ada', level: 'admin' }) })
  const secret = 'password=hunter2'
  const job = await board.post(
    'import',
    {},
    { name: `of ${secret}`, key: `k ${secret}`, resources: { exclusive: [`r ${secret}`] } },
  )
  const doomed = await board.post('import', {}, { name: `doomed ${secret}` })
  await board.cancel(doomed, { reason: 'x' })
  await board.limits.set(`api ${secret}`, { concurrency: 1 })
  const paths = [
    '/jobs',
    '/trash',
    '/history',
    '/limits',
    '/resources',
    '/suggest?q=of',
    '/suggest?q=hunter',
    '/overview',
  ]
  for (const path of [...paths, `/jobs/${job.uuid}`, `/jobs/${doomed.uuid}`])
    expect(JSON.stringify((await client.get(`/boards/main${path}`)).body), path).not.toContain('hunter2')
  const found = async (q: string) =>
    (await client.get<{ jobs: unknown[] }>(`/boards/main/jobs?q=${encodeURIComponent(q)}`)).body.jobs
  for (const q of ['hunter2', 'name:*hunter2', 'key:*hunter2', 'resource:*hunter2', 'state:trashed hunter2'])
    expect(await found(q), q).toEqual([])
  expect(await found('name:of*')).toHaveLength(1)
  const suggested = (await client.get<{ suggestions: { text: string }[] }>('/boards/main/suggest?q=of')).body
    .suggestions
  expect(suggested.length).toBeGreaterThan(0)
})
