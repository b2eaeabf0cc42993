/** The API as a Hono app: it checks who asks and what they may do, reads the request by its schemas, and answers with JSON. */
import { type Context, Hono } from 'hono'
import { rejectOnAbort } from '../core/async/abort.ts'
import { asError, InvalidArgument, NotConnected } from '../core/errors.ts'
import { jsonable, parseJson } from '../core/json.ts'
import { type CheckedAccess, type Client, checkAccess, levelOn } from './access/access.ts'
import { assertNotCrossSite, assertSameOrigin } from './access/same-origin.ts'
import { describeApi } from './api/openapi.ts'
import type { Call, Route, Services } from './api/route.ts'
import { ROUTES } from './api/routes.ts'
import { Refusal, toProblem } from './problem.ts'

/** The client, the path and the rights of a request, which are known before it is routed. */
export interface Bindings {
  readonly client: Client
  /** The path below the mount. */
  readonly path: string
  readonly access: CheckedAccess
}

type Env = { Bindings: Bindings }

const API = '/api/v1'
const MAX_BODY_BYTES = 1_000_000
/** The time within which a body must have arrived. */
const BODY_MS = 20_000
/** The time within which a board must answer. */
const ANSWER_MS = 45_000

/** Returns the handler of the requests to the API. */
export function createApi(services: Services): (request: Request, bindings: Bindings) => Promise<Response> {
  const app = new Hono<Env>({ getPath: (_request, options) => (options?.env as Bindings | undefined)?.path ?? '/' })
  app.get(`${API}/openapi.json`, (context) => context.json(describeApi(ROUTES)))
  for (const route of ROUTES) app.on(route.method, `${API}${route.path}`, (context) => answer(route, context, services))
  app.notFound((context) => {
    const { path } = context.env
    const known = ROUTES.some((route) => toPattern(`${API}${route.path}`).test(path))
    throw known
      ? new Refusal('METHOD_NOT_ALLOWED', `${context.req.method} is not possible here`)
      : new Refusal('NOT_FOUND', 'there is no such route; openapi.json lists all')
  })
  app.onError((error) => refuse(error, services))
  return async (request, bindings) => app.fetch(request, bindings)
}

/** Checks and carries out one request. */
async function answer(route: Route, context: Context<Env>, services: Services): Promise<Response> {
  const { client } = context.env
  const params = context.req.param() as Record<string, string>
  const access = accessTo(params['board'], context.env.access)
  const request = context.req.raw
  if (route.method === 'POST') assertSameOrigin(request)
  else assertNotCrossSite(request)
  if (route.values && !access.values)
    throw new Refusal('FORBIDDEN', `${access.who} does not have the right to see stores and results`)
  const call: Call<unknown, unknown> = {
    ...{ services, request, client, access },
    params,
    query: route.query?.parse(context.req.query()),
    body: route.body?.parse(route.method === 'POST' ? await readJson(request) : undefined),
  }
  const result = await withinTime(route.handle(call))
  if (result instanceof Response) {
    // Hono drops the body of a HEAD request without cancelling it: a stream would stay open until its maximum age.
    if (request.method === 'HEAD') await result.body?.cancel()
    return result
  }
  // Names, keys and other texts of rows may contain what is hidden, too.
  return Response.json(jsonable(services.redaction.texts(result)), { headers: { 'Cache-Control': 'no-store' } })
}

/** Resolves with the result of the work. @throws NotConnected if the board does not answer in time */
async function withinTime<T>(work: Promise<T>): Promise<T> {
  const late = AbortSignal.timeout(ANSWER_MS)
  try {
    return await rejectOnAbort(work, late)
  } catch (error) {
    // The client has its answer by now: a stream that is opened later would have no reader.
    if (late.aborted) void work.then(cancelBody).catch(() => undefined)
    if (late.aborted && error === late.reason)
      throw new NotConnected(`the board has not answered for ${ANSWER_MS / 1_000} s; try again`)
    throw error
  }
}

async function cancelBody(result: unknown): Promise<void> {
  if (result instanceof Response) await result.body?.cancel()
}

/** Reads a JSON body. @throws Refusal if it is too large, too slow, or not JSON */
async function readJson(request: Request): Promise<unknown> {
  const announced = Number(request.headers.get('content-length') ?? 0)
  if (announced > MAX_BODY_BYTES) throw tooLarge()
  const reader = request.body?.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  const late = AbortSignal.timeout(BODY_MS)
  try {
    for (;;) {
      const next = await rejectOnAbort(reader ? reader.read() : Promise.resolve({ done: true, value: undefined }), late)
      if (next.done || !next.value) break
      bytes += next.value.byteLength
      if (bytes > MAX_BODY_BYTES) throw tooLarge()
      chunks.push(next.value)
    }
  } catch (error) {
    await reader?.cancel().catch(() => undefined)
    if (late.aborted && error === late.reason) throw new Refusal('TIMEOUT', 'the body did not arrive in time')
    throw error
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
    return parseJson(text === '' ? '{}' : text)
  } catch (error) {
    const why = error instanceof InvalidArgument ? error.message : 'is not UTF-8'
    throw new Refusal('BAD_REQUEST', `the body must be JSON: it ${why}`)
  }
}

function tooLarge(): Refusal {
  return new Refusal('BODY_TOO_LARGE', `a body must not exceed ${MAX_BODY_BYTES / 1_000_000} MB`)
}

/** Returns the response for an error. A defect is logged, and its text is not sent. */
export function refuse(error: unknown, { log, redaction }: Pick<Services, 'log' | 'redaction'>): Response {
  const { status, problem, headers } = toProblem(error)
  if (status === 500) log.error({ err: asError(error) }, 'dashboard: a request failed')
  const shown = { code: problem.code, message: redaction.text(problem.message).slice(0, 1_000) }
  return Response.json(shown, { status, headers: { 'Cache-Control': 'no-store', ...headers } })
}

/** Returns the access with the level of the person on this board. @throws Refusal for a board that is not shown to them */
function accessTo(board: string | undefined, access: CheckedAccess): CheckedAccess {
  const level = board === undefined ? access.level : levelOn(access, board)
  if (level) return { ...access, level }
  throw new Refusal('FORBIDDEN', `${access.who} has no level on this board`)
}

/** Returns the rights of a request. @throws Refusal if it is not authenticated */
export async function authorize(
  request: Request,
  client: Client,
  { settings, log, signIns }: Services,
): Promise<CheckedAccess> {
  const { authenticator } = settings
  const granted = await authenticator.authorize(request, client)
  let access: CheckedAccess | undefined
  try {
    access = checkAccess(granted)
  } catch (cause) {
    // A mistake of the application, and not of the client.
    throw new Error('authorize has returned an invalid value', { cause })
  }
  if (access) return access
  signIns.logWrong(request, { address: client.address, log })
  const { challenge, advice = 'sign in first' } = authenticator
  throw new Refusal(
    'UNAUTHORIZED',
    `the request is not authenticated: ${advice}`,
    challenge ? { 'WWW-Authenticate': challenge } : {},
  )
}

function toPattern(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+')}$`)
}
