/** `jobboard ui`, as it is shipped. */
import { describe, expect } from 'vitest'
import { openBoard } from '../../src/index.ts'
import { usual as test, variant } from '../variant.ts'
import { createCliFolder } from './workplace.ts'

const session = async (url: string, headers: Record<string, string> = {}) => {
  const { origin } = new URL(url)
  const answer = await fetch(`${origin}/api/v1/session`, { headers })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

/** The address in the first line that the command prints. */
const addressOf = (text: string): string => /http:\/\/\S+/.exec(text)?.[0] ?? ''

describe('jobboard ui', () => {
  test('prints a link that signs in once, serves the board, and ends with SIGTERM', async () => {
    await using place = await createCliFolder()
    await using board = await openBoard(place.board)
    const { uuid } = await board.post('import', {})
    const running = place.start(['ui', '--port', '0', '--persistence', place.persistence])
    await running.says('Ctrl-C stops it')
    const link = addressOf(running.heard())
    expect(running.heard()).toContain(`dashboard of ${place.board} at ${link}`)
    expect((await session(link)).status).toBe(401)
    const signedIn = await fetch(link, { redirect: 'manual' })
    expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, './'])
    expect((await fetch(link, { redirect: 'manual' })).status).toBe(401)
    const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';')
    const { body } = await session(link, { cookie })
    const boards = body['boards'] as { name: string; kind: string; supports: object }[]
    expect(body).toMatchObject({ who: 'local', level: 'admin', values: true, doctor: true })
    expect(boards).toMatchObject([{ kind: 'zookeeper', supports: { logbooks: true } }])
    const { origin } = new URL(link)
    const ask = async (path: string, init: RequestInit = {}) => {
      const headers = { cookie, 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
      const answer = await fetch(`${origin}/api/v1/boards/${boards[0]?.name}${path}`, { headers, ...init })
      expect(answer.status, path).toBe(200)
      return answer.json() as Promise<Record<string, unknown>>
    }
    expect(await ask('/jobs')).toMatchObject({ jobs: [{ uuid, state: 'WAITING' }] })
    expect((await ask('/doctor'))['findings']).toContainEqual(
      expect.objectContaining({ level: 'ok', subject: 'board' }),
    )
    await ask(`/jobs/${uuid}/cancel`, { method: 'POST', body: '{"reason":"no"}' })
    expect(await board.countJobs()).toBe(0)
    running.process.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ exitCode: 0 })
    expect((await running.ended).stderr).toContain('"audit":"cancel"')
  })

  variant('serves several boards, read-only', async () => {
    await using place = await createCliFolder()
    const uris = [`${place.board}/urgent`, `${place.board}/bulk`]
    for (const uri of uris) await (await openBoard(uri)).close()
    const running = place.start([
      'ui',
      '--port',
      '0',
      '--auth',
      'none',
      '--read-only',
      '--json',
      ...uris.flatMap((uri) => ['--board', uri]),
    ])
    await running.says('"url"')
    const { url, boards } = JSON.parse(running.heard()) as { url: string; boards: string[] }
    expect(boards).toEqual(['urgent', 'bulk'])
    expect((await session(url)).body).toMatchObject({ readOnly: true, boards: [{ name: 'urgent' }, { name: 'bulk' }] })
    running.process.kill('SIGINT')
    expect(await running.ended).toMatchObject({ exitCode: 0 })
  })

  test('signs in with passwords of a file', async () => {
    await using place = await createCliFolder()
    await (await openBoard(place.board)).close()
    const { stdout } = await place.jobboard(['ui', 'password', 'ada', '--level', 'operate'], {
      stdin: 'correct horse\n',
    })
    await place.write('people', stdout)
    const running = place.start(['ui', '--port', '0', '--basic', 'people', '--host', '127.0.0.1'])
    await running.says('Ctrl-C stops it')
    const url = addressOf(running.heard())
    expect((await session(url)).status).toBe(401)
    const authorization = `Basic ${Buffer.from('ada:correct horse').toString('base64')}`
    expect((await session(url, { authorization })).body).toMatchObject({ who: 'ada', level: 'operate', values: false })
    running.process.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ exitCode: 0 })
  })

  test.each([
    [['--host', '0.0.0.0'], 'can be reached from other machines'],
    [['--host', '0.0.0.0', '--auth', 'none'], 'can be reached from other machines'],
    [['--host', 'jobs.example.com'], 'can be reached from other machines'],
    [['--token', 'short'], 'a token must have at least 16 characters'],
    [['--auth', 'none', '--token', 'x'.repeat(20)], '--auth and --token are ways to sign in: give one of them'],
    [['--trust-header', 'X-User'], 'needs the addresses of the proxies'],
    [['--trusted-proxy', '10.0.0.0/8'], '--trusted-proxy needs --trust-header'],
    [['--basic', 'nowhere'], '--basic nowhere: ENOENT'],
    [['--port', '70000'], '--port must be a whole number'],
    [['--base', 'x y'], 'base must be a path'],
  ])('%j is wrong usage', async (args, message) => {
    await using place = await createCliFolder()
    await (await openBoard(place.board)).close()
    expect(await place.jobboard(['ui', ...args])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining(message),
    })
  })

  test('a board that does not exist is not made', async () => {
    await using place = await createCliFolder()
    expect(await place.jobboard(['ui', '--port', '0'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('there is no board'),
    })
  })

  variant('a port in use is named', async () => {
    await using place = await createCliFolder()
    await (await openBoard(place.board)).close()
    const running = place.start(['ui', '--port', '0', '--json'])
    await running.says('"url"')
    const { port } = new URL((JSON.parse(running.heard()) as { url: string }).url)
    expect(await place.jobboard(['ui', '--port', port])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('the port is in use'),
    })
    running.process.kill('SIGTERM')
    await running.ended
  })
})
