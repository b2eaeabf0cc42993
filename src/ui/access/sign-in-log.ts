/** Logs sign-ins that were refused: who tried, and from where; never a password or a token. */
import type { Logger } from '../../core/log.ts'
import { monotonic } from '../../core/time.ts'
import { cleanName } from './access.ts'

const PERIOD_MS = 1_000
/** The maximum number of lines in a period: guesses must not fill the disk. */
const MAX_LINES = 20
const MAX_NAME = 100

/** The log of the refused sign-ins of one dashboard. */
export class SignInLog {
  #since = Number.NEGATIVE_INFINITY
  #lines = 0

  /** Logs a refused request that had credentials. A request without them is not logged: it is only a person who has yet to sign in. */
  logWrong(request: Request, { address, log }: { readonly address: string | undefined; readonly log: Logger }): void {
    const how = howOf(request)
    if (!how) return
    const now = monotonic()
    if (now - this.#since > PERIOD_MS) {
      if (this.#lines > MAX_LINES) log.warn({ more: this.#lines - MAX_LINES }, 'dashboard: more sign-ins were refused')
      this.#since = now
      this.#lines = 0
    }
    this.#lines += 1
    if (this.#lines <= MAX_LINES) log.warn({ address, ...how }, 'dashboard: a sign-in was refused')
  }
}

/** Returns the kind of the credentials, and the name if they have one. */
function howOf(request: Request): { readonly by: string; readonly user?: string } | undefined {
  const [, scheme, value = ''] = /^(\w{1,20}) +(.*)$/s.exec(request.headers.get('authorization') ?? '') ?? []
  if (scheme?.toLowerCase() === 'basic') {
    const [user = ''] = Buffer.from(value.slice(0, 4_000), 'base64').toString('utf8').split(':')
    return { by: 'password', user: cleanName(user).slice(0, MAX_NAME) }
  }
  if (scheme !== undefined) return { by: 'token' }
  return new URL(request.url).searchParams.has('token') ? { by: 'link' } : undefined
}
