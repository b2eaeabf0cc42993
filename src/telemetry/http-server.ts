/**
 * A small HTTP server for probes and for Prometheus. The number of connections and their time are limited: otherwise a client that reaches
 * the port could hold connections open until the process has no file descriptors left.
 */
import { createServer, type IncomingMessage } from 'node:http'
import { InvalidArgument } from '../core/errors.ts'

export interface HttpAddress {
  /** The port number; 0 selects any free port. */
  readonly port: number
  /** The interface to listen on: 127.0.0.1 by default; 0.0.0.0 for all, which probes from outside of a container need. */
  readonly host?: string
}

/** The answer to a GET or HEAD request. */
export interface HttpAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

export interface HttpServer extends AsyncDisposable {
  readonly url: string
}

export interface HttpLimits {
  readonly maxConnections?: number
  readonly requestTimeoutMs?: number
}

export interface HttpServerOptions {
  /** The name of the server in errors. */
  readonly name: string
  /** Returns the answer for a path. */
  readonly answer: (path: string) => HttpAnswer | Promise<HttpAnswer>
  /** Called with errors of the server, and of `answer`. */
  readonly onError: (error: unknown) => void
  readonly limits?: HttpLimits | undefined
}

/**
 * The maximum number of open connections: more than the probes and load balancers of a site use. Each costs a file
 * descriptor.
 */
const MAX_CONNECTIONS = 100
/** The time limit for the head of a request, for the whole request, and for an idle connection. */
const REQUEST_TIMEOUT_MS = 5_000
/** The period between checks for connections over their time limit. Node's default is 30 seconds. */
const CHECK_PERIOD_MS = 1_000
/** The maximum size of a request's headers: probes send few. */
const MAX_HEADER_BYTES = 4_096

/** Starts a server on the address. @throws InvalidArgument if it cannot listen there */
export async function serveHttp(
  { port, host = '127.0.0.1' }: HttpAddress,
  { name, answer, onError, limits = {} }: HttpServerOptions,
): Promise<HttpServer> {
  const { maxConnections = MAX_CONNECTIONS, requestTimeoutMs = REQUEST_TIMEOUT_MS } = limits
  const toAnswer = async (request: IncomingMessage): Promise<HttpAnswer> => {
    try {
      return await toHttpAnswer(request, answer)
    } catch (error) {
      onError(error)
      // The text may name servers, paths and data, and every client that reaches the port reads the answer.
      return toJsonAnswer(500, { error: 'the server has failed; its log says why' })
    }
  }
  const server = createServer(
    {
      headersTimeout: requestTimeoutMs,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.min(CHECK_PERIOD_MS, requestTimeoutMs),
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    async (request, response) => {
      const { status, contentType, body } = await toAnswer(request)
      response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' })
      response.end(body)
    },
  )
  server.maxConnections = maxConnections
  await new Promise<void>((resolve, reject) => {
    const onRefused = (cause: Error) => {
      reject(new InvalidArgument(`${name}: cannot listen on ${host} port ${port}: ${cause.message}`, { cause }))
    }
    server.once('error', onRefused)
    server.listen(port, host, () => {
      // A later error, such as running out of file descriptors, must not end the process and its jobs.
      server.on('error', onError).off('error', onRefused)
      resolve()
    })
  })
  const address = server.address()
  const listening = typeof address === 'object' && address ? address.port : port
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${listening}`,
    [Symbol.asyncDispose]: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      return closed
    },
  }
}

async function toHttpAnswer(
  { method, url = '/' }: IncomingMessage,
  answer: HttpServerOptions['answer'],
): Promise<HttpAnswer> {
  if (method !== 'GET' && method !== 'HEAD') return toJsonAnswer(405, { error: 'the method must be GET or HEAD' })
  const [path = ''] = url.split('?')
  return answer(path)
}

export function toJsonAnswer(status: number, body: object): HttpAnswer {
  return { status, contentType: 'application/json', body: `${JSON.stringify(body)}\n` }
}
