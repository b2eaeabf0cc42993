/** The URIs that name boards and logbooks. Several hosts may stand in one, which `URL` cannot read. */
import { InvalidArgument } from './errors.ts'
import { toMilliseconds } from './time.ts'

export interface ResourceUri {
  readonly scheme: string
  /** The hosts, as written: `127.0.0.1:2181,127.0.0.1:2182`. Empty where there is no `//`. */
  readonly authority: string
  /** What stands before the hosts, `user:password@`, without its escapes. */
  readonly credentials: { readonly user: string; readonly password: string | undefined } | undefined
  /** With its leading slash behind an authority; as written otherwise (`directory:./logbooks`). */
  readonly path: string
  readonly parameters: ReadonlyMap<string, string>
  /** For people: without the password. */
  readonly printable: string
}

/** What a URI can name, with one to paste for whoever wrote none. */
const EXAMPLE_URIS = { board: 'zookeeper://127.0.0.1:2181/demo', persistence: 'directory:./logbooks' } as const

const URI_PATTERN = /^([a-z][a-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?$/i

/** @throws InvalidArgument when the text is no URI, or when a password in it cannot be told from the rest */
export function parseUri(text: string, what: keyof typeof EXAMPLE_URIS): ResourceUri {
  const found = URI_PATTERN.exec(text)
  if (!found) {
    const how = text.includes('#') ? 'a # in it has to be written %23' : `write ${EXAMPLE_URIS[what]}`
    throw new InvalidArgument(`${what}: ${JSON.stringify(redactUri(text))} is no URI; ${how}`)
  }
  const [, scheme = '', authority = '', path = '', query = ''] = found
  const printable = redactUri(text)
  // Whatever is printed of such a URI, the hosts for one, may be half a password.
  if (authority !== '' && `${path}${query}`.includes('@')) {
    const escapes = 'in a password write %2F for / and %3F for ?, elsewhere %40 for @'
    throw new InvalidArgument(`${what} ${printable}: there is an @ behind the hosts; ${escapes}`)
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

/** @throws InvalidArgument at a parameter nobody reads: a misspelt option must not be ignored in silence */
export function assertParameters(uri: ResourceUri, known: readonly string[]): void {
  for (const name of uri.parameters.keys()) {
    if (known.includes(name)) continue
    const can = known.length > 0 ? `known are ${known.join(', ')}` : 'none is known here'
    throw new InvalidArgument(`${uri.printable}: unknown parameter ${JSON.stringify(name)}; ${can}`)
  }
}

/**
 * A duration among the parameters, in milliseconds; a number alone is milliseconds, too. Undefined where there is none.
 *
 * @throws InvalidArgument naming the parameter
 */
export function readDurationParameter({ parameters, printable }: ResourceUri, name: string): number | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  return toMilliseconds(/^\d+$/.test(text) ? Number(text) : text, `${printable}: ${name}`)
}

/**
 * The URI with `***` where a password stands. Up to the last `@`, for a password may hold what a URI should have escaped:
 * hiding too much of an odd path is better than showing half a password.
 */
export function redactUri(text: string): string {
  const local = /^(directory|memory):/i.test(text)
  const [, scheme = '', user = ''] = KNOWN_USER_PATTERN.exec(text) ?? []
  const authority = local ? text : text.replace(CREDENTIALS_PATTERN, () => `${scheme}${user}***@`)
  return authority.replace(/([?&](?:password|passphrase|auth|secret)=)[^&]*/gi, '$1***')
}

/** Also of what is no URI: a blank before it, say, or a line's end behind a password that was read from a file. */
const CREDENTIALS_PATTERN = /^.*@/s
/** Without a colon the whole of it may be the secret. */
const KNOWN_USER_PATTERN = /^([a-z][a-z0-9+.-]*:\/*)([^/?#:@]*:)?/i

function decodePart(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
