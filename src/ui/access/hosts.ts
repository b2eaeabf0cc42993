/**
 * The names under which a dashboard answers. A page of an attacker whose own name resolves to this machine's address (DNS rebinding) would be
 * of the dashboard's origin for a browser; its `Host` is the attacker's name, and is refused.
 */
import { InvalidArgument } from '../../core/errors.ts'

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

export class AllowedHosts {
  readonly #names: ReadonlySet<string>
  readonly #any: boolean

  /** @param names host names without a port; `*` allows all. @throws InvalidArgument */
  constructor(names: readonly string[] = []) {
    if (!Array.isArray(names))
      throw new InvalidArgument("allowedHosts must be a list of names, as in ['jobs.example.com']")
    for (const name of names) {
      if (typeof name === 'string' && (name === '*' || /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)$/i.test(name))) continue
      throw new InvalidArgument(`allowedHosts: a host is a name or an address without a port, got '${String(name)}'`)
    }
    this.#any = names.includes('*')
    this.#names = new Set([...LOOPBACK, ...names].map((name) => name.toLowerCase()))
  }

  allows(host: string | null | undefined): boolean {
    if (this.#any) return true
    const name = hostName(host)
    return name !== undefined && (this.#names.has(name) || name.endsWith('.localhost'))
  }
}

/** Returns the name in a `Host` header, without its port and in small letters; undefined for a text that is none. */
export function hostName(host: string | null | undefined): string | undefined {
  const [, name] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(host ?? '') ?? []
  return name?.toLowerCase().replace(/\.$/, '')
}
