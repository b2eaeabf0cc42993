/** The definition of a route of the API: its path, the rights that it needs, and the schemas of request and answer. */
import { z } from 'zod'
import type { Logger } from '../../core/log.ts'
import type { Redactor } from '../../core/redaction.ts'
import type { CheckedAccess, Client } from '../access/access.ts'
import type { SignInLog } from '../access/sign-in-log.ts'
import type { ViewedBoard } from '../boards/viewed-board.ts'
import type { ChangeStreams, StreamCounter } from '../change-streams.ts'
import type { DashboardSettings } from '../options.ts'
import type { Unencoded } from '../wire/common.ts'

/** The parts of the dashboard that routes use. */
export interface Services {
  readonly settings: DashboardSettings
  readonly boards: ReadonlyMap<string, ViewedBoard>
  readonly streams: ReadonlyMap<string, ChangeStreams>
  readonly counter: StreamCounter
  readonly signIns: SignInLog
  readonly redaction: Redactor
  readonly log: Logger
  /** Fires when the dashboard is closed. */
  readonly signal: AbortSignal
}

/** A checked request to a route. */
export interface Call<Q, B> {
  readonly services: Services
  readonly request: Request
  readonly client: Client
  readonly access: CheckedAccess
  readonly params: Readonly<Record<string, string>>
  readonly query: Q
  readonly body: B
}

export interface RouteOptions<Q extends z.ZodType, B extends z.ZodType, A extends z.ZodType> {
  readonly method: 'GET' | 'POST'
  /** The path below `api/v1`, with `:name` for parameters. */
  readonly path: string
  readonly summary: string
  readonly query?: Q
  readonly body?: B
  /** The schema of the answer; absent for a stream. */
  readonly answer?: A
  /** Whether it needs the right to see values. */
  readonly values?: boolean
  readonly handle: (call: Call<z.infer<Q>, z.infer<B>>) => Promise<Unencoded<z.infer<A>>>
}

export type Route = RouteOptions<z.ZodType, z.ZodType, z.ZodType>

/** Returns the route with the types of its schemas checked. */
export function defineRoute<
  Q extends z.ZodType = z.ZodObject,
  B extends z.ZodType = z.ZodUndefined,
  A extends z.ZodType = z.ZodUnknown,
>(options: RouteOptions<Q, B, A>): Route {
  // The schemas have checked what the handler receives.
  return options as object as Route
}

/** The milliseconds for which a request waits if it accepts a part of a long board. */
export const FIRST_LOOK_MS = 50

/**
 * Returns for how long a request waits while a board is read for the first time; undefined to wait until it is. A request with the header
 * `Prefer: respond-async` (RFC 7240) does not.
 */
export function waitOf({ request }: Pick<Call<unknown, unknown>, 'request'>): number | undefined {
  return /\brespond-async\b/i.test(request.headers.get('prefer') ?? '') ? FIRST_LOOK_MS : undefined
}

/** Returns the schema of the number of items in a query. */
export function limitQuery({ most, by }: { readonly most: number; readonly by: number }) {
  return z
    .string()
    .regex(/^\d{1,6}$/, `must be a whole number from 1 to ${most}`)
    .transform(Number)
    .pipe(z.number().min(1).max(most))
    .default(by)
}

export const afterQuery = z.string().max(500).optional()
export const searchQuery = z.string().max(2_000).default('')
