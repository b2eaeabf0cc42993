/** A dashboard in this process and a client of it: each answer is parsed by the schema that the API declares for its route. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'vitest'
import { ROUTES } from '../../src/ui/api/routes.ts'
import { type Dashboard, type DashboardOptions, dashboard } from '../../src/ui/index.ts'
import { problem } from '../../src/ui/wire/common.ts'

export interface Answer<T = Record<string, unknown>> {
  readonly status: number
  readonly headers: Headers
  readonly body: T
}

export interface Client extends AsyncDisposable {
  readonly dashboard: Dashboard
  get<T = Record<string, unknown>>(path: string, headers?: Record<string, string>): Promise<Answer<T>>
  post<T = Record<string, unknown>>(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer<T>>
}

export const ORIGIN = 'http://localhost:7411'
/** What a browser sends with a change of the dashboard's own page. */
export const OWN = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' } as const

/** Where requests of this machine come from. */
export const LOCAL = { address: '127.0.0.1' } as const

/** Opens a dashboard. Its requests go through `fetch`. */
export function openClient(options: DashboardOptions): Client {
  const opened = dashboard(options)
  const ask = async <T>(request: Request): Promise<Answer<T>> => {
    const response = await opened.fetch(request, LOCAL)
    const text = await response.text()
    const body: unknown = text === '' ? undefined : JSON.parse(text)
    parseAnswer(request, response.status, body)
    return { status: response.status, headers: response.headers, body: body as T }
  }
  return {
    dashboard: opened,
    get: (path, headers = {}) => ask(new Request(`${ORIGIN}/api/v1${path}`, { headers })),
    post: (path, body, headers = OWN) =>
      ask(new Request(`${ORIGIN}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })),
    [Symbol.asyncDispose]: () => opened.close(),
  }
}

/** Checks an answer by the schema of its route: an answer that the description of the API does not describe is a defect. */
function parseAnswer({ method, url }: Request, status: number, body: unknown): void {
  if (status >= 400) {
    expect(problem.strict().parse(body)).toEqual(body)
    return
  }
  const path = new URL(url).pathname.replace(/^.*\/api\/v1/, '')
  const route = ROUTES.find((one) => {
    return one.method === method && new RegExp(`^${one.path.replace(/:\w+/g, '[^/]+')}$`).test(path)
  })
  if (route?.answer) expect(route.answer.parse(body), path).toEqual(body)
}

export interface HttpServer extends AsyncDisposable {
  readonly url: string
  readonly server: Server
}

/** Serves a handler of Node's on a free port. */
export async function serve(handler: Parameters<typeof createServer>[1]): Promise<HttpServer> {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    server,
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
