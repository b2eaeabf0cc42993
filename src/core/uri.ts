/** The URIs that name boards and logbooks. A URI may name several hosts, which `URL` cannot parse. */

import { InvalidArgument } from './errors.ts'
import { ILL_FORMED } from './texts.ts'
import { toTimerMs } from './time.ts'

export interface ResourceUri {
  readonly scheme: string
  /** The hosts, as written: `127.0.0.1:2181,127.0.0.1:2182`. Empty if there is no `//`. */
  readonly authority: string
  /** The user and the password before the hosts (`user:password@`), unescaped. */
  readonly credentials: { readonly user: string; readonly password: string | undefined } | undefined
  /** The path, with its leading slash after an authority; otherwise as written (`directory:./logbooks`). */
  readonly path: string
  readonly parameters: ReadonlyMap<string, string>
  /** The URI without the password, for messages. */
  readonly printable: string
}

/** The things that a URI can name, each with an example for error messages. */
const EXAMPLE_URIS = { board: 'zookeeper://127.0.0.1:2181/demo', persistence: 'directory:./logbooks' } as const

const URI_PATTERN = /^([a-z][a-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?$/i

/** @throws InvalidArgument when the text is not a URI, or when the end of its password is ambiguous */
export function parseUri(text: string, what: keyof typeof EXAMPLE_URIS): ResourceUri {
  if (typeof text === 'string' && !text.isWellFormed())
    throw new InvalidArgument(`${redactUri(text)}: the URI ${ILL_FORMED}`)
  const found = URI_PATTERN.exec(text)
  if (!found) {
    const how = text.includes('#') ? 'write %23 for a # in it' : `write ${EXAMPLE_URIS[what]}`
    throw new InvalidArgument(`${what}: ${JSON.stringify(redactUri(text))} is not a URI; ${how}`)
  }
  const [, scheme = '', authority = '', path = '', query = ''] = found
  const printable = redactUri(text)
  // Every printed part of such a URI, such as the hosts, could be half of a password.
  if (authority !== '' && `${path}${query}`.includes('@')) {
    const escapes = 'in a password write %2F for / and %3F for ?, elsewhere %40 for @'
    throw new InvalidArgument(`${what} ${printable}: there is an @ after the hosts; ${escapes}`)
  }
  const at = authority.lastIndexOf('@')
  return {
    scheme: scheme.toLowerCase(),
    authority: authority.slice(at + 1),
    credentials: at < 0 ? undefined : parseCredentials(authority.slice(0, at)),
    path: decodePart(path),
    parameters: new Map(new URLSearchParams(query)),
    printable,
  }
}

function parseCredentials(text: string): NonNullable<ResourceUri['credentials']> {
  const colon = text.indexOf(':')
  if (colon < 0) return { user: decodePart(text), password: undefined }
  return { user: decodePart(text.slice(0, colon)), password: decodePart(text.slice(colon + 1)) }
}

/** @throws InvalidArgument for an unknown parameter: a misspelt one must not be ignored silently */
export function assertParameters(uri: ResourceUri, known: readonly string[]): void {
  for (const name of uri.parameters.keys()) {
    if (known.includes(name)) continue
    const can = known.length > 0 ? `the parameters are ${known.join(', ')}` : 'it takes no parameters'
    throw new InvalidArgument(`${uri.printable}: unknown parameter ${JSON.stringify(name)}; ${can}`)
  }
}

/**
 * Reads a duration among the parameters, in milliseconds; a number without a unit is milliseconds, too. Returns undefined if
 * the parameter is absent.
 *
 * @throws InvalidArgument naming the parameter, also if it is longer than the timers of drivers and servers can wait
 */
export function readDurationParameter({ parameters, printable }: ResourceUri, name: string): number | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  return toTimerMs(/^\d+$/.test(text) ? Number(text) : text, `${printable}: ${name}`)
}

/**
 * Returns the URI with `***` for its password. Everything up to the last `@` is hidden, because a password may hold
 * characters that should have been escaped: hiding too much of an unusual path is better than showing half a password.
 */
export function redactUri(text: string): string {
  const local = /^(directory|memory|sqlite):/i.test(text)
  const [, scheme = '', user = ''] = KNOWN_USER_PATTERN.exec(text) ?? []
  const authority = local ? text : text.replace(CREDENTIALS_PATTERN, () => `${scheme}${user}***@`)
  return authority.replace(/([?&](?:password|passphrase|auth|secret)=)[^&]*/gi, '$1***')
}

/** Matches also if the text is not a URI: it begins with a blank, say, or the password from a file ends in a line break. */
const CREDENTIALS_PATTERN = /^.*@/s
/** Matches a user only if a colon follows: without one, the whole text may be the secret. */
const KNOWN_USER_PATTERN = /^([a-z][a-z0-9+.-]*:\/*)([^/?#:@]*:)?/i

function decodePart(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
