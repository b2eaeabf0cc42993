/** The dashboard in servers of all kinds: under any path, whether the framework strips it or not. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type JobBoard, openBoard } from '../../src/board/index.ts'
import { type Dashboard, dashboard } from '../../src/ui/index.ts'
import { relativeBase, route } from '../../src/ui/paths.ts'
import { LOCAL, ORIGIN, serve } from './client.ts'

let board: JobBoard
let jobs: Dashboard

beforeEach(async () => {
  board = await openBoard('memory:')
  jobs = dashboard({ board })
})

afterEach(async () => {
  await jobs.close()
  await board.close()
})

const RULES = { isBoard: (name: string) => name === 'main', isAsset: (file: string) => file === 'app-1.js' }

test.each([
  ['/', 'page', '', '/', './'],
  ['/b/main/jobs', 'page', '', '/b/main/jobs', '../../'],
  ['/b/main/jobs/0199', 'page', '', '/b/main/jobs/0199', '../../../'],
  ['/b/main/', 'page', '', '/b/main/', '../../'],
  ['/ops/', 'page', '/ops', '/', './'],
  ['/ops/b/main/jobs', 'page', '/ops', '/b/main/jobs', '../../'],
  ['/a/b/c/b/main/flows/jobboard%2Fhold', 'page', '/a/b/c', '/b/main/flows/jobboard%2Fhold', '../../../'],
  ['/app-1.js', 'asset', '', '/app-1.js', './'],
  ['/ops/jobs/app-1.js', 'asset', '/ops/jobs', '/app-1.js', './'],
  ['/api/v1/session', 'api', '', '/api/v1/session', '../../'],
  ['/ops/api/v1/boards/main/jobs', 'api', '/ops', '/api/v1/boards/main/jobs', '../../../../'],
])('%s is %s below %s', (pathname, kind, mount, path, base) => {
  expect(route(pathname, RULES)).toEqual({ kind, mount, path })
  expect(relativeBase(path)).toBe(base)
  // What the browser makes of it.
  expect(new URL(relativeBase(path), `http://x${pathname}`).pathname).toBe(`${mount}/`)
})

test.each([
  ['/ops/jobs', '/ops/jobs', { kind: 'add-slash', location: './jobs/' }],
  ['/ops/jobs/', '/ops/jobs', { kind: 'page', mount: '/ops/jobs', path: '/' }],
  ['/ops/jobs/b/main/x', '/ops/jobs', { kind: 'page', mount: '/ops/jobs', path: '/b/main/x' }],
  // The framework has stripped it.
  ['/b/main/x', '/ops/jobs', { kind: 'page', mount: '', path: '/b/main/x' }],
  ['/api/v1/session', '/ops/jobs', { kind: 'api', mount: '', path: '/api/v1/session' }],
  // Where the base is said, a page may have any path.
  ['/b/main/ops/jobs', '/b/main', { kind: 'page', mount: '/b/main', path: '/ops/jobs' }],
])('%s with base %s', (pathname, base, expected) => {
  expect(route(pathname, { ...RULES, base })).toEqual(expected)
})

test.each([
  ...[
    '/..%2f..%2fetc/passwd',
    '/%2e%2e/x/',
    '/b/main/..%2f..',
    '//evil/',
    '/b//main',
    '/b/main/%5c..%5c',
    '/b/main\\x',
    '/b/main/%00',
  ],
  ...[
    '/b/main/%zz',
    '/.%2e/',
    '/b/main/jobs/..',
    '/favicon.ico',
    '/app-2.js',
    '/x%0d%0aSet-Cookie:a',
    '/b/main/a%2f%2fb',
  ],
])('%s is not found', (pathname) => {
  expect(route(pathname, RULES)).toBeUndefined()
})

describe('answers', () => {
  const get = async (url: string) => jobs.fetch(new Request(url), LOCAL)

  test.each(['', '/ops/jobs', '/x/y/z'])('below the path %j, which nobody has named', async (mount) => {
    const session = async (path: string) => (await get(`${ORIGIN}${path}/api/v1/session`)).status
    expect(await session(mount)).toBe(200)
    // A rule of the application for the API below the mount cannot be passed by a longer path.
    for (const more of ['/x', '/x/y', '/%61pi']) expect(await session(`${mount}${more}`), more).toBe(404)
    expect(await session(mount)).toBe(200)
  })

  test('a longer path that was asked for first is given up with the first request of the mount', async () => {
    const session = async (path: string) => (await get(`${ORIGIN}${path}/api/v1/session`)).status
    expect(await session('/jobs/x')).toBe(200)
    expect(await session('/jobs')).toBe(200)
    expect(await session('/jobs/x')).toBe(404)
  })

  test('a path of the API where the base is said', async () => {
    const told = dashboard({ board, base: '/jobs' })
    const status = async (path: string) => (await told.fetch(new Request(`${ORIGIN}${path}`), LOCAL)).status
    expect(await status('/jobs/api/v1/session')).toBe(200)
    for (const path of ['/jobs/x/api/v1/session', '/x/api/v1/session', '/x/jobs/api/v1/session'])
      expect(await status(path), path).toBe(404)
    await told.close()
  })

  test('a path without its slash is sent to the one with it, and keeps its query', async () => {
    const { status, headers } = await get(`${ORIGIN}/ops/jobs?x=1`)
    expect([status, headers.get('location')]).toEqual([308, './jobs/?x=1'])
  })

  test('a path that looks like an address leads to no other server', async () => {
    for (const path of ['https:evil', 'javascript:alert(1)', '%2f%2fevil', '@evil', 'x:']) {
      const { headers } = await get(`${ORIGIN}/${path}`)
      const location = headers.get('location')
      if (location !== null) expect(new URL(location, `${ORIGIN}/${path}`).origin, path).toBe(ORIGIN)
    }
  })

  test('an unknown route of the API, and a method that a route has not', async () => {
    expect((await get(`${ORIGIN}/api/v1/nope`)).status).toBe(404)
    const wrong = await jobs.fetch(new Request(`${ORIGIN}/api/v1/session`, { method: 'POST' }), LOCAL)
    expect(wrong.status).toBe(405)
  })
})

describe("in Node's server", () => {
  test('as the handler of all requests', async () => {
    await using server = await serve(jobs.node)
    const answer = await fetch(`${server.url}/api/v1/session`)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ who: 'local' })
  })

  test('as Express calls it: the path is cut, and the body may have been read', async () => {
    await using server = await serve(async (request, response) => {
      const url = request.url ?? ''
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const body: unknown = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {}
      Object.assign(request, { originalUrl: url, url: url.slice('/ops'.length) || '/', body })
      jobs.node(request, response)
    })
    expect((await fetch(`${server.url}/ops/api/v1/session`)).status).toBe(200)
    expect((await fetch(`${server.url}/ops/x/api/v1/session`)).status).toBe(404)
    const redirect = await fetch(`${server.url}/ops`, { redirect: 'manual' })
    expect([redirect.status, redirect.headers.get('location')]).toEqual([308, './ops/'])
    const posted = await fetch(`${server.url}/ops/api/v1/boards/main/jobs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
      body: JSON.stringify({ flow: 'import', store: { a: 1 } }),
    })
    expect(posted.status, await posted.text()).toBe(200)
    expect(await board.countJobs()).toBe(1)
  })

  test('leaves the globals of the process as they are', async () => {
    const before = [globalThis.Request, globalThis.Response]
    await using server = await serve(jobs.node)
    await fetch(`${server.url}/api/v1/session`)
    expect([globalThis.Request, globalThis.Response]).toEqual(before)
  })
})

test('a dashboard that is closed answers 503, and can be closed again', async () => {
  await jobs.close()
  expect((await jobs.fetch(new Request(`${ORIGIN}/api/v1/session`), LOCAL)).status).toBe(503)
  await jobs.close()
})
