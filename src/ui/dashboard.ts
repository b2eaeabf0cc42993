/** The dashboard as a Fetch handler, which any server can mount, and as a handler for Node's http server. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createSharedController } from '../core/async/abort.ts'
import type { Client } from './access/access.ts'
import { SignInLog } from './access/sign-in-log.ts'
import type { Services } from './api/route.ts'
import { authorize, createApi, refuse } from './app.ts'
import { ViewedBoard } from './boards/viewed-board.ts'
import { ChangeStreams, StreamCounter } from './change-streams.ts'
import { securityHeaders } from './headers.ts'
import { Mounts } from './mounts.ts'
import { type DashboardOptions, dashboardSettings } from './options.ts'
import { loadPageFiles, type PageFiles } from './page-files.ts'
import { type Route, relativeBase, route, toDirectory } from './paths.ts'
import { Refusal } from './problem.ts'

export interface Dashboard {
  /**
   * Answers a request. A second argument may say where it came from: the bindings of `@hono/node-server`, or `{ address }`.
   *
   * @example app.all('/jobs/*', (context) => jobs.fetch(context.req.raw, context.env))
   */
  readonly fetch: (request: Request, from?: unknown) => Promise<Response>
  /** Answers a request of Node's http server, of Express or of Fastify. */
  readonly node: (request: IncomingMessage, response: ServerResponse) => void
  /** Ends the streams and the views of the boards. The boards stay open. Idempotent. */
  readonly close: () => Promise<void>
}

/**
 * Makes a dashboard of one board, or of several. It has a view of a board only while somebody looks at it.
 *
 * @throws InvalidArgument
 * @example
 * const jobs = dashboard({ board, persistence, authorize: (request) => userOf(request) })
 * express().use('/jobs', jobs.node)
 */
export function dashboard(options: DashboardOptions): Dashboard {
  const settings = dashboardSettings(options)
  const closing = createSharedController()
  const streams = new Map(settings.boards.map(({ name }) => [name, new ChangeStreams(name)]))
  const boards = new Map(
    settings.boards.map((given) => {
      const onTopics = (topics: readonly string[]) => streams.get(given.name)?.publish(topics)
      const onFeedClosed = () => streams.get(given.name)?.forget()
      return [given.name, ViewedBoard.of({ ...given, log: settings.log, onTopics, onFeedClosed })]
    }),
  )
  const services: Services = {
    ...{ settings, boards, streams, counter: new StreamCounter(), signIns: new SignInLog(), signal: closing.signal },
    ...{ redaction: settings.redaction, log: settings.log },
  }
  const handler = new Handler(services)
  const fetch: Dashboard['fetch'] = (request, from) => handler.answer(request, { client: toClient(from, settings) })
  return {
    fetch,
    node: (request, response) => void answerNode(handler, request, response),
    close: async () => {
      closing.abort()
      for (const each of streams.values()) each.close()
      await Promise.all([...boards.values()].map((each) => each.close()))
    },
  }
}

class Handler {
  readonly #services: Services
  readonly #headers: Readonly<Record<string, string>>
  readonly #api: ReturnType<typeof createApi>
  readonly #mounts = new Mounts()
  #files: Promise<PageFiles> | undefined

  constructor(services: Services) {
    this.#services = services
    this.#headers = securityHeaders(services.settings)
    this.#api = createApi(services)
  }

  get log(): Services['log'] {
    return this.#services.log
  }

  async answer(request: Request, from: From): Promise<Response> {
    const response = await this.#answer(request, from).catch((error: unknown) => refuse(error, this.#services))
    const headers = new Headers(response.headers)
    for (const [name, value] of Object.entries(this.#headers)) headers.set(name, value)
    return new Response(response.body, { status: response.status, headers })
  }

  async #answer(request: Request, { client, isCut = false }: From): Promise<Response> {
    const { settings, signal, boards } = this.#services
    if (signal.aborted) throw new Refusal('UNAVAILABLE', 'the dashboard is closed')
    if (!URL.canParse(request.url)) throw new Refusal('BAD_REQUEST', 'the Host header or the path is invalid')
    const url = new URL(request.url)
    const host = request.headers.get('host') ?? url.host
    if (!settings.hosts.allows(host))
      throw new Refusal(
        'HOST_NOT_ALLOWED',
        `this dashboard does not answer as '${host.slice(0, 200)}': allow the host, as in --allowed-host NAME`,
      )
    this.#files ??= loadPageFiles()
    const files = await this.#files
    // If a framework has removed the mount from the path, the rest is the dashboard's own part.
    const base = settings.base ?? (isCut ? '' : undefined)
    const found = route(url.pathname, { base, isBoard: (name) => boards.has(name), isAsset: (file) => files.has(file) })
    if (!found) throw new Refusal('NOT_FOUND', 'there is no such page')
    const isLook = request.method === 'GET' || request.method === 'HEAD'
    if (found.kind === 'add-slash') {
      if (!isLook) throw new Refusal('NOT_FOUND', 'there is no such route')
      return new Response(null, { status: 308, headers: { Location: `${found.location}${url.search}` } })
    }
    if (base === undefined && !this.#mounts.allows(found.mount))
      throw new Refusal('NOT_FOUND', 'there is no such page; the dashboard is mounted at a shorter path')
    if (found.kind === 'api') return this.#answerApi(request, { client, found })
    if (!isLook) throw new Refusal('METHOD_NOT_ALLOWED', `${request.method} is not possible here`)
    // The files are public: they are those of the package.
    if (found.kind === 'asset') return files.answer(found.path.slice(1), request)
    const mount = `${settings.base ?? found.mount}/`
    const signedIn = settings.authenticator.signIn?.(request, mount)
    if (signedIn) return signedIn
    try {
      await authorize(request, client, this.#services)
      this.#mounts.note(found.mount)
    } catch (error) {
      return refusePage(error)
    }
    return files.page(relativeBase(found.path), request)
  }

  async #answerApi(
    request: Request,
    { client, found }: { readonly client: Client; readonly found: Route },
  ): Promise<Response> {
    const access = await authorize(request, client, this.#services)
    this.#mounts.note(found.mount)
    return this.#api(request, { client, access, path: found.path })
  }
}

/** Answers a person who may not open the page, in words rather than JSON. @throws an error that is not a refusal */
function refusePage(error: unknown): Response {
  if (!(error instanceof Refusal)) throw error
  const headers = { ...error.headers, 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' }
  return new Response(`jobboard: ${error.message}\n`, { status: error.status, headers })
}

/** Where a request came from. */
interface From {
  readonly client: Client
  /** Whether a framework has cut the path of the mount. */
  readonly isCut?: boolean
}

/** Returns the client of a request, with the address if the framework passes it. */
function toClient(from: unknown, { log }: Pick<Services, 'log'>): Client {
  const { address, incoming }: { address?: unknown; incoming?: { socket?: { remoteAddress?: unknown } } } = Object(from)
  const found = address ?? incoming?.socket?.remoteAddress
  return { address: typeof found === 'string' ? found : undefined, log }
}

/** A request of Node with what frameworks add to it: the path before they cut it, and the body if they have read it. */
type FrameworkRequest = IncomingMessage & {
  readonly originalUrl?: string
  readonly body?: unknown
  rawBody?: Buffer
}

async function answerNode(handler: Handler, request: FrameworkRequest, response: ServerResponse): Promise<void> {
  const { getRequestListener } = await import('@hono/node-server')
  const path = request.originalUrl?.split('?')[0]
  if (path !== undefined && !path.endsWith('/') && /^\/?(\?|$)/.test(request.url ?? '')) {
    // For a mount that is requested without its slash, Express removes the whole path.
    response.writeHead(308, { Location: toDirectory(path), 'Content-Length': '0' }).end()
    return
  }
  if (
    request.readableEnded &&
    typeof request.body === 'object' &&
    request.body !== null &&
    request.rawBody === undefined
  )
    request.rawBody = Buffer.from(JSON.stringify(request.body))
  const client: Client = { address: request.socket.remoteAddress, log: handler.log }
  // Express, Connect and their routers keep the whole path here.
  const isCut = path !== undefined && path !== request.url?.split('?')[0]
  const listener = getRequestListener((fetched) => handler.answer(fetched, { client, isCut }), {
    overrideGlobalObjects: false,
  })
  await listener(request, response)
}
