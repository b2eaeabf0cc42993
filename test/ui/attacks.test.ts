/** What attackers try: other sites, other names, stolen and guessed secrets, large and slow requests, and hostile names of jobs. */
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type JobBoard, openBoard } from '../../src/board/index.ts'
import {
  type Access,
  basicAccess,
  type DashboardOptions,
  dashboard,
  oneTimeLink,
  passwordLine,
  tokenAccess,
  trustedHeader,
} from '../../src/ui/index.ts'
import { type Client, LOCAL, ORIGIN, OWN, openClient, serve } from './client.ts'

let board: JobBoard

beforeEach(async () => {
  board = await openBoard('memory:')
})

afterEach(() => board.close())

const READER: Access = { who: 'bob', level: 'read' }

const open = (options: Omit<DashboardOptions, 'board'> = {}): Client => openClient({ board, ...options })

const ask = async (options: Omit<DashboardOptions, 'board'>, request: Request, from?: unknown): Promise<Response> => {
  const opened = dashboard({ board, ...options })
  try {
    return await opened.fetch(request, from ?? LOCAL)
  } finally {
    await opened.close()
  }
}

describe('another site', () => {
  const SITES: readonly (readonly [string, Record<string, string>, number])[] = [
    ['the own page', { 'sec-fetch-site': 'same-origin' }, 200],
    ['another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['another name of the same site', { 'sec-fetch-site': 'same-site' }, 403],
    ['an address that somebody has typed', { 'sec-fetch-site': 'none' }, 403],
    ['an old browser, own page', { origin: ORIGIN, host: 'localhost:7411' }, 200],
    ['an old browser behind a proxy with TLS', { origin: 'https://localhost', host: 'localhost:443' }, 200],
    ['an old browser, another page', { origin: 'http://evil.example', host: 'localhost:7411' }, 403],
    ['an old browser, another port', { origin: 'http://localhost:8080', host: 'localhost:7411' }, 403],
    ['an old browser, a sandbox', { origin: 'null', host: 'localhost:7411' }, 403],
    ['a program with a secret', { authorization: 'Bearer x' }, 200],
    ['who says nothing', {}, 403],
    ['another site that adds a secret', { 'sec-fetch-site': 'cross-site', authorization: 'Bearer x' }, 403],
    ['another page that adds a secret', { origin: 'http://evil.example', authorization: 'Bearer x' }, 403],
  ]
  test.each(SITES)('%s', async (_, headers, expected) => {
    await using client = open()
    const all = { 'content-type': 'application/json', ...headers }
    expect((await client.post('/boards/main/pause', {}, all)).status).toBe(expected)
    expect(board.paused).toBe(expected === 200)
  })

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'text/plain; application/json',
    '',
  ])('what a form can send (%s) changes nothing', async (type) => {
    await using client = open()
    const headers = { ...OWN, 'content-type': type }
    expect((await client.post('/boards/main/pause', {}, headers)).status).toBe(415)
  })

  test('a GET changes nothing, and a method can not be overridden', async () => {
    await using client = open()
    const headers = { 'x-http-method-override': 'POST' }
    expect((await client.get('/boards/main/pause', headers)).status).toBe(405)
    expect((await client.get('/boards/main/pause?_method=POST', headers)).status).toBe(405)
    expect(board.paused).toBe(false)
  })
})

describe('another name (DNS rebinding)', () => {
  test.each([
    ['localhost:7411', 200],
    ['LOCALHOST', 200],
    ['127.0.0.1:1', 200],
    ['[::1]:7411', 200],
    ['board.localhost', 200],
    ['evil.example', 421],
    ['evil.example:7411', 421],
    ['127.0.0.1.evil.example', 421],
    ['localhost.evil.example', 421],
    ['localhost:7411@evil.example', 421],
    ['localhost evil', 421],
    ['0.0.0.0', 421],
    ['', 421],
  ])('%s: %i', async (host, expected) => {
    for (const path of ['/', '/api/v1/session']) {
      const { status } = await ask({}, new Request(`${ORIGIN}${path}`, { headers: { host } }))
      // The page itself is not built here.
      expect(status === 421, path).toBe(expected === 421)
    }
  })

  test('a name is allowed only together with authorize', async () => {
    expect(() => dashboard({ board, allowedHosts: ['jobs.example.com'] })).toThrow('allowedHosts without authorize')
    const options = { allowedHosts: ['jobs.example.com'], authorize: () => READER }
    const from = (host: string) => ask(options, new Request(`${ORIGIN}/api/v1/session`, { headers: { host } }))
    expect((await from('jobs.example.com')).status).toBe(200)
    expect((await from('other.example.com')).status).toBe(421)
  })
})

test('every answer has the headers that bind browsers', async () => {
  const paths = [
    '/api/v1/session',
    '/api/v1/nope',
    '/api/v1/boards/main/jobs?q=x:y',
    '/',
    '/..%2f',
    '/favicon.ico',
    '/ops',
  ]
  for (const path of paths) {
    const { headers } = await ask({}, new Request(`${ORIGIN}${path}`))
    expect(headers.get('content-security-policy'), path).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
    )
    expect(headers.get('x-content-type-options'), path).toBe('nosniff')
    expect(headers.get('referrer-policy'), path).toBe('no-referrer')
    expect(headers.get('cross-origin-opener-policy'), path).toBe('same-origin')
    expect(headers.get('x-frame-options'), path).toBe('DENY')
    expect(headers.has('access-control-allow-origin'), path).toBe(false)
  }
})

test('a frame is permitted to the origins that are named', async () => {
  const { headers } = await ask(
    { frameAncestors: ['https://portal.example.com'] },
    new Request(`${ORIGIN}/api/v1/session`),
  )
  expect(headers.get('content-security-policy')).toContain('frame-ancestors https://portal.example.com')
  expect(headers.has('x-frame-options')).toBe(false)
  expect(() => dashboard({ board, frameAncestors: ["*; script-src 'unsafe-inline'"] })).toThrow('frameAncestors')
})

describe('without rights', () => {
  test('nothing is answered to somebody who is not known', async () => {
    await using client = open({ authorize: () => undefined })
    for (const path of ['/session', '/openapi.json', '/boards/main/jobs', '/boards/main/events', '/nope'])
      expect((await client.get(path)).status, path).toBe(401)
    expect((await client.post('/boards/main/pause', {})).status).toBe(401)
  })

  test.each([{ who: '', level: 'admin' }, { who: 'x', level: 'root' }, { level: 'admin' }, 'admin', true])(
    'an answer of authorize that is none (%j) grants nothing',
    async (access) => {
      await using client = open({ authorize: () => access as Access })
      // A mistake of the application: the client is not to blame, and reads nothing of it.
      expect((await client.get('/session')).status).toBe(500)
      expect((await client.post('/boards/main/pause', {})).status).toBe(500)
    },
  )

  test('an authorize that throws grants nothing, and its text stays here', async () => {
    await using client = open({
      authorize: () => {
        throw new Error('password of the database is hunter2')
      },
    })
    const { status, body } = await client.get('/session')
    expect([status, body['code']]).toEqual([500, 'INTERNAL'])
    expect(JSON.stringify(body)).not.toContain('hunter2')
  })

  test('stores and results are nowhere to be seen', async () => {
    const secret = 'hunter2'
    const job = await board.post('import', { password: secret }, { resources: { exclusive: ['disk'] } })
    const trashed = await board.post('import', { password: secret })
    await (await board.claim(trashed)).trash({ reason: 'x' })
    await using client = open({ authorize: () => READER })
    const paths = [
      'jobs',
      `jobs/${job.uuid}`,
      `jobs/${trashed.uuid}`,
      'trash',
      'trash/groups',
      'overview',
      'resources',
      'suggest?q=hun',
    ]
    for (const path of paths) {
      const { status, body } = await client.get(`/boards/main/${path}`)
      expect([path, status]).toEqual([path, 200])
      expect(JSON.stringify(body), path).not.toContain(secret)
    }
    for (const path of [
      `jobs/${job.uuid}/values`,
      `jobs/${trashed.uuid}/values`,
      'jobs?q=store.password%3Dhunter2',
      'trash?q=store.password%3Dh',
    ])
      expect((await client.get(`/boards/main/${path}`)).status, path).toBe(403)
  })

  test('what is redacted is not shown to those who may see values', async () => {
    const { uuid } = await board.post('import', { password: 'hunter2', file: 'a' })
    await using client = open({ redact: ['password'] })
    const { body } = await client.get(`/boards/main/jobs/${uuid}/values`)
    expect(body).toEqual({ store: { password: '[redacted]', file: 'a' } })
  })
})

describe('a search is no way to guess', () => {
  const found = async (client: Client, path: string) => {
    const { status, body } = await client.get(`/boards/main/${path}`)
    expect([path, status]).toEqual([path, 200])
    return (body['jobs'] as unknown[]).length
  }

  test('what is redacted in reasons: of jobs in the trash, in the history, and of those that were returned', async () => {
    await using kept = await openBoard('memory:', { keepHistory: 10 })
    const reason = 'refused: password=hunter2 of ada'
    await (await kept.claim(await kept.post('import', {}))).trash({ reason })
    await (await kept.claim(await kept.post('import', {}))).abandon({ reason, delay: '1h' })
    await using client = openClient({ board: kept, authorize: () => READER, redact: ['password'] })
    for (const place of ['trash?q=', 'history?q=', 'jobs?q=']) {
      expect(await found(client, `${place}${encodeURIComponent('reason:"*of ada"')}`), place).toBe(1)
      for (const guess of ['reason:"*password=h*"', 'reason:"*hunter2*"', 'hunter2'])
        expect(await found(client, `${place}${encodeURIComponent(guess)}`), `${place}${guess}`).toBe(0)
    }
    const { body: trash } = await client.get('/boards/main/trash')
    expect(trash['jobs']).toMatchObject([{ reason: 'refused: password=[redacted] of ada' }])
    const cancel = { action: 'cancel', query: 'hunter2', dryRun: true }
    await using operator = openClient({ board: kept, redact: ['password'] })
    const { body } = await operator.post('/boards/main/bulk', cancel)
    expect(body).toMatchObject({ matched: 0 })
  })

  test('what is redacted in stores', async () => {
    await board.post('import', { password: 'hunter2', file: 'a', url: 'x?password=hunter2' })
    await using client = open({ redact: ['password'] })
    expect(await found(client, 'jobs?q=store.file%3Da')).toBe(1)
    expect(await found(client, 'jobs?q=store.password%3Dhunter2')).toBe(0)
    expect(await found(client, `jobs?q=${encodeURIComponent('store.url="x?password=hunter2"')}`)).toBe(0)
  })
})

describe('tokens', () => {
  const TOKEN = 'correct-horse-battery-staple'
  const session = (headers: Record<string, string>) => new Request(`${ORIGIN}/api/v1/session`, { headers })

  test('a fixed token in a header', async () => {
    const authorize = tokenAccess(TOKEN, { level: 'operate', who: 'robot' })
    expect((await ask({ authorize }, session({ authorization: `Bearer ${TOKEN}` }))).status).toBe(200)
    for (const authorization of [
      '',
      'Bearer',
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(1)}`,
      `Basic ${TOKEN}`,
      TOKEN,
    ]) {
      const answer = await ask({ authorize }, session({ authorization }))
      expect([authorization, answer.status]).toEqual([authorization, 401])
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
    expect(() => tokenAccess('short', { level: 'read' })).toThrow('at least 16 characters')
  })

  test('a fixed token in a link sets a cookie that scripts cannot read, and leaves the address', async () => {
    const authorize = tokenAccess(TOKEN, { level: 'read' })
    const answer = await ask({ authorize }, new Request(`${ORIGIN}/ops/b/main/jobs?token=${TOKEN}`))
    expect([answer.status, answer.headers.get('location')]).toEqual([303, './jobs'])
    const cookie = answer.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^jobboard_\w+=[\w-]+; Path=\/ops\/; HttpOnly; SameSite=Strict$/)
    expect(cookie).not.toContain(TOKEN)
    const [pair = ''] = cookie.split(';')
    expect((await ask({ authorize }, session({ cookie: `a=b; ${pair}` }))).status).toBe(200)
    expect((await ask({ authorize }, session({ cookie: `${pair}x` }))).status).toBe(401)
    const over = await ask({ authorize }, new Request(`https://localhost/?token=${TOKEN}`))
    expect(over.headers.get('set-cookie')).toContain('; Secure')
  })

  test('a token in an address works for pages only', async () => {
    const authorize = tokenAccess(TOKEN, { level: 'admin' })
    expect((await ask({ authorize }, new Request(`${ORIGIN}/api/v1/session?token=${TOKEN}`))).status).toBe(401)
    const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
    const change = new Request(`${ORIGIN}/api/v1/boards/main/pause?token=${TOKEN}`, {
      method: 'POST',
      headers,
      body: '{}',
    })
    expect((await ask({ authorize }, change)).status).toBe(401)
  })

  test('a link works once', async () => {
    const link = oneTimeLink({ level: 'admin' })
    const follow = () => ask({ authorize: link }, new Request(`${ORIGIN}/?token=${link.token}`))
    expect((await ask({ authorize: link }, new Request(`${ORIGIN}/?token=wrong`))).status).toBe(401)
    const first = await follow()
    expect(first.status).toBe(303)
    expect((await follow()).status).toBe(401)
    const [cookie = ''] = (first.headers.get('set-cookie') ?? '').split(';')
    expect((await ask({ authorize: link }, session({ cookie }))).status).toBe(200)
    // The token itself is no cookie, and no header.
    const [name] = cookie.split('=')
    expect((await ask({ authorize: link }, session({ cookie: `${name}=${link.token}` }))).status).toBe(401)
    expect((await ask({ authorize: link }, session({ authorization: `Bearer ${link.token}` }))).status).toBe(401)
  })
})

describe('passwords', () => {
  const basic = (name: string, password: string) => `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`
  const withPassword = (authorization: string) =>
    new Request(`${ORIGIN}/api/v1/session`, { headers: { authorization } })

  test('a person with the right one is known', async () => {
    const file = [
      await passwordLine('ada', 'correct horse', { level: 'admin', values: true }),
      '# people who only look',
      await passwordLine('bob', 'päss:wörd', { level: 'read' }),
      '',
    ].join('\n')
    expect(file).not.toContain('correct')
    const authorize = basicAccess(file)
    const who = async (authorization: string) => {
      const answer = await ask({ authorize }, withPassword(authorization))
      return answer.status === 200 ? await answer.json() : answer.status
    }
    expect(await who(basic('ada', 'correct horse'))).toMatchObject({ who: 'ada', level: 'admin', values: true })
    expect(await who(basic('ada', 'correct horse'))).toMatchObject({ who: 'ada' })
    const onBoards = file.replace('admin:values', 'admin@main,read@bulk')
    const shown = await ask({ authorize: basicAccess(onBoards) }, withPassword(basic('ada', 'correct horse')))
    expect(await shown.json()).toMatchObject({ level: 'read', boards: [{ name: 'main', level: 'admin' }] })
    expect(await who(basic('bob', 'päss:wörd'))).toMatchObject({ who: 'bob', level: 'read', values: false })
    for (const wrong of [
      basic('ada', 'wrong'),
      basic('ada', ''),
      basic('eve', 'correct horse'),
      'Basic',
      'Basic !!!',
      basic('', 'x'),
    ])
      expect(await who(wrong), wrong).toBe(401)
    const { headers } = await ask({ authorize }, withPassword('Basic x'))
    expect(headers.get('www-authenticate')).toContain('Basic realm=')
  })

  test.each([
    'ada:secret',
    'ada:scrypt$16384$8$1$xx$yy:admin',
    'ada:scrypt$4$8$1$AAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA:admin',
    'x',
    ...['admin@', 'admin@a,admin', 'owner@a', 'admin@a,read@a', '@a'].map(
      (levels) => `ada:scrypt$16384$8$1$AAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA:${levels}`,
    ),
  ])('a line that is none is refused: %s', (line) => expect(() => basicAccess(line)).toThrow('line 1'))

  test('guesses do not use up the machine', async () => {
    const authorize = basicAccess(await passwordLine('ada', 'correct horse', { level: 'read' }))
    const opened = dashboard({ board, authorize })
    const guesses = Array.from({ length: 150 }, (_, index) =>
      opened.fetch(withPassword(basic('ada', `guess ${index}`))),
    )
    const statuses = (await Promise.all(guesses)).map(({ status }) => status)
    await opened.close()
    // Two are checked, eight of this address wait, and the others are refused at once.
    expect(statuses.filter((status) => status === 401)).toHaveLength(10)
    expect(statuses.filter((status) => status === 429)).toHaveLength(140)
  })
})

describe('a header of a proxy', () => {
  const authorize = trustedHeader({ header: 'X-User', proxies: ['10.0.0.0/8', '::1', '192.168.1.7'], level: 'operate' })
  const from = (address: string | undefined, headers: Record<string, string>) =>
    ask({ authorize }, new Request(`${ORIGIN}/api/v1/session`, { headers }), { address })

  test.each([
    ['10.1.2.3', 200],
    ['::ffff:10.1.2.3', 200],
    ['::1', 200],
    ['192.168.1.7', 200],
    ['192.168.1.8', 401],
    ['11.0.0.1', 401],
    ['::2', 401],
    [undefined, 401],
    ['10.0.0.1, 11.0.0.1', 401],
  ])('is believed from %s: %i', async (address, expected) => {
    expect((await from(address, { 'x-user': 'ada' })).status).toBe(expected)
  })

  test('is not believed where there are two, or none', async () => {
    for (const headers of [{ 'x-user': 'admin, ada' }, { 'x-user': '' }, { 'x-user': ' ' }, {}])
      expect((await from('10.1.2.3', headers)).status).toBe(401)
  })

  test('an address in a header is not an address', async () => {
    expect(
      (await from('11.0.0.1', { 'x-user': 'ada', 'x-forwarded-for': '10.1.2.3', forwarded: 'for=10.1.2.3' })).status,
    ).toBe(401)
  })

  test('a name cannot forge a line of the log or of a reason', async () => {
    const opened = dashboard({ board, authorize: () => ({ who: 'ada\u202e\u001b[2J\nroot', level: 'operate' }) })
    const { uuid } = await board.post('import', {})
    const url = `${ORIGIN}/api/v1/boards/main/jobs/${uuid}/cancel`
    expect((await opened.fetch(new Request(url, { method: 'POST', headers: OWN, body: '{}' }), LOCAL)).status).toBe(200)
    await opened.close()
    for await (const { reason } of board.trashed()) expect(reason).toContain('(ada??[2J?root)')
  })

  test.each([['10.0.0.0/33'], ['proxy'], ['10.0.0.0/8/8'], ['']])('%s is not a network', (proxy) => {
    expect(() => trustedHeader({ header: 'X-User', proxies: [proxy], level: 'read' })).toThrow(
      'neither an address nor a network',
    )
  })
})

describe('bodies', () => {
  test('that are too large are refused before they are read', async () => {
    await using client = open()
    const large = { reason: 'x'.repeat(1_000_001) }
    expect((await client.post('/boards/main/pause', large)).status).toBe(413)
    const announced = { ...OWN, 'content-length': '1000000000' }
    expect((await client.post('/boards/main/pause', {}, announced)).status).toBe(413)
  })

  test('that never end are refused when they are too large', async () => {
    let sent = 0
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += 1
        controller.enqueue(new Uint8Array(65_536).fill(32))
      },
    })
    const request = new Request(`${ORIGIN}/api/v1/boards/main/pause`, {
      method: 'POST',
      headers: OWN,
      body,
      duplex: 'half',
    } as RequestInit)
    expect((await ask({}, request)).status).toBe(413)
    expect(sent).toBeLessThan(30)
  })

  test.each([
    '{',
    '[1',
    'undefined',
    '\u0000',
    '"x"',
    '[]',
    '7',
    'null',
    '{"reason":7}',
    JSON.stringify({ reason: 'x'.repeat(1_001) }),
  ])('that are not what is expected are refused (%#)', async (body) => {
    const request = new Request(`${ORIGIN}/api/v1/boards/main/pause`, { method: 'POST', headers: OWN, body })
    const answer = await ask({}, request)
    expect(answer.status).toBe(400)
    expect(String(Object(await answer.json()).message)).not.toContain('\n')
  })

  test('that set __proto__ change no prototype', async () => {
    await using client = open()
    const body = JSON.parse(
      '{"flow":"x","store":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}',
    )
    await client.post('/boards/main/jobs', body)
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })
})

describe('paths over the wire', () => {
  /** Sends a path as it is: clients of a higher level would clean it. */
  const raw = (url: string, path: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const { port } = new URL(url)
      httpRequest({ host: '127.0.0.1', port, path, headers: { host: 'localhost' } }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
        .on('error', reject)
        .end()
    })

  test.each([
    ...[
      '/..%2f..%2f..%2fetc/passwd',
      '/%2e%2e%2f',
      '//etc/passwd',
      '/b//main',
      '/..%5c..%5cx',
      '/%00',
      '/b/main/%2e%2e%2f',
      '/app.js',
    ],
    ...[
      '/api/v1/..%2fboards',
      '/api/v1/boards/%2e%2e/jobs%2f..',
      '/api/v1/boards/main/jobs/..%2f..%2fx/picture',
      '/.git/config',
    ],
  ])('%s is not found', async (path) => {
    const opened = dashboard({ board })
    await using server = await serve(opened.node)
    expect(await raw(server.url, path)).toBe(404)
    await opened.close()
  })

  test('an address in place of a path does not change the host', async () => {
    const opened = dashboard({ board })
    await using server = await serve(opened.node)
    const { port } = new URL(server.url)
    const socket = connect(Number(port), '127.0.0.1')
    socket.end('GET http://evil.example/api/v1/session HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    let text = ''
    for await (const chunk of socket) text += chunk
    expect(text).not.toContain('"who"')
    await opened.close()
  })
})

describe('hostile names', () => {
  const NAMES = [
    '<img src=x onerror=alert(1)>',
    '\u001b[2J\u001b]0;x\u0007',
    '\u202egnp.exe',
    "'; DROP TABLE jobs; --",
    'x'.repeat(900),
    '\u2028</script>',
  ]

  test('are plain JSON, never markup', async () => {
    const opened = dashboard({ board })
    for (const name of NAMES)
      await board.post(name, { [name]: name }, { name, key: name, resources: { exclusive: [name] } })
    const answer = await opened.fetch(new Request(`${ORIGIN}/api/v1/boards/main/jobs`), LOCAL)
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    const { jobs } = (await answer.json()) as { jobs: { name: string; uuid: string }[] }
    expect(jobs.map(({ name }) => name)).toEqual(NAMES)
    for (const { uuid } of jobs) {
      const detail = await opened.fetch(new Request(`${ORIGIN}/api/v1/boards/main/jobs/${uuid}`), LOCAL)
      expect([detail.status, detail.headers.get('content-type')]).toEqual([200, 'application/json'])
    }
    await opened.close()
  })

  test('of boards and uuids in paths are not repeated as markup', async () => {
    await using client = open()
    for (const path of [
      '/boards/%3Cscript%3E/jobs',
      '/boards/main/jobs/%3Cscript%3E',
      '/boards/main/batches/%3Cscript%3E',
    ]) {
      const { status, headers } = await client.get(path)
      expect([path, status]).toEqual([path, 404])
      expect(headers.get('content-type')).toMatch(/^application\/json/)
    }
  })

  test('of boards are refused when the dashboard is made', () => {
    for (const name of ['', '..', 'a/b', '<b>', 'x'.repeat(101)])
      expect(() => dashboard({ boards: { [name]: board } }), name).toThrow('name of a board')
  })
})
