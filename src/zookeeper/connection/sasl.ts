/**
 * SASL DIGEST-MD5 (RFC 2831) as ZooKeeper uses it: the server sends a challenge, the client proves that it knows the
 * password without sending it, and the server proves that it knows it, too. The identity is `sasl:USERNAME` in ACLs.
 *
 *     client                                   server
 *     an empty token                       →
 *                                          ←   realm, nonce
 *     response, over nonce and cnonce      →
 *                                          ←   rspauth, over the same
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'
import { AuthFailed } from '../protocol/errors.ts'
import { ConnectionFault } from './faults.ts'

/** Credentials for SASL DIGEST-MD5: the password is not sent. */
export interface SaslCredentials {
  readonly username: string
  readonly password: string
}

/**
 * Checks credentials.
 *
 * @throws InvalidArgument for values that no server could accept, without the secret
 */
export function checkSasl(credentials: SaslCredentials): void {
  assertOptions(credentials, { username: true, password: true }, 'sasl')
  for (const name of ['username', 'password'] as const) {
    if (typeof credentials[name] !== 'string' || credentials[name] === '')
      throw new InvalidArgument(`sasl: ${name} must be a non-empty string`)
  }
}

/** Name that all servers have in digests, whatever their host is. */
const DIGEST_URI = 'zookeeper/zk-sasl-md5'
const QOP = 'auth'
const FIRST_NONCE_COUNT = '00000001'
/** Largest token: the limit that is sent to servers and checked here. */
const MAX_TOKEN_BYTES = 65_536

type Digest = (bytes: Uint8Array) => Buffer

export interface SaslOptions {
  /** Nonce of the client; tests set it. */
  readonly cnonce?: string
  readonly md5?: Digest
}

/** State of one exchange; each connection needs its own. */
export class DigestMd5 {
  readonly #credentials: SaslCredentials
  readonly #cnonce: string
  readonly #md5: Digest
  #expected: string | undefined

  constructor(credentials: SaslCredentials, options: SaslOptions = {}) {
    this.#credentials = credentials
    this.#cnonce = options.cnonce ?? randomBytes(24).toString('base64')
    this.#md5 = explainMd5Failure(options.md5 ?? ((bytes) => createHash('md5').update(bytes).digest()))
  }

  /**
   * Returns the response to a challenge.
   *
   * @param challenge the server's answer to an empty token
   * @throws ConnectionFault when the server asks for something else than DIGEST-MD5 with plain authentication: it is
   * configured in another way, or without SASL, and the next server may be usable
   * @throws AuthFailed where Node has no MD5
   */
  respond(challenge: Uint8Array): Buffer {
    const directives = parseDirectives(decode(challenge))
    const realm = directives.get('realm') ?? ''
    const nonce = directives.get('nonce')
    const qops = (directives.get('qop') ?? QOP).split(',').map((each) => each.trim())
    if (nonce === undefined || directives.get('algorithm') !== 'md5-sess' || !qops.includes(QOP)) {
      throw new ConnectionFault(
        'auth',
        'the server does not offer a SASL DIGEST-MD5 mechanism that this client supports',
      )
    }
    const { username, password } = this.#credentials
    const user = this.#md5(
      Buffer.concat([encodeSaslText(username), COLON, encodeSaslText(realm), COLON, encodeSaslText(password)]),
    )
    const secret = this.#hex(Buffer.concat([user, Buffer.from(`:${nonce}:${this.#cnonce}`)]))
    const over = (uri: string) => {
      return this.#hex(`${secret}:${nonce}:${FIRST_NONCE_COUNT}:${this.#cnonce}:${QOP}:${this.#hex(uri)}`)
    }
    this.#expected = over(`:${DIGEST_URI}`)
    return Buffer.from(
      [
        'charset=utf-8',
        `username=${quoteDirective(username)}`,
        `realm=${quoteDirective(realm)}`,
        `nonce=${quoteDirective(nonce)}`,
        `nc=${FIRST_NONCE_COUNT}`,
        `cnonce=${quoteDirective(this.#cnonce)}`,
        `digest-uri=${quoteDirective(DIGEST_URI)}`,
        `maxbuf=${MAX_TOKEN_BYTES}`,
        `response=${over(`AUTHENTICATE:${DIGEST_URI}`)}`,
        `qop=${QOP}`,
      ].join(','),
    )
  }

  /**
   * Checks the server's proof.
   *
   * @throws ConnectionFault when the server does not know the password either
   */
  verify(token: Uint8Array): void {
    const said = Buffer.from(parseDirectives(decode(token)).get('rspauth') ?? '')
    const expected = Buffer.from(this.#expected ?? '')
    if (expected.length > 0 && said.length === expected.length && timingSafeEqual(said, expected)) return
    const message = 'the server could not prove that it knows the SASL password: it may be an impostor'
    throw new ConnectionFault('auth', message)
  }

  #hex(text: string | Uint8Array): string {
    return this.#md5(typeof text === 'string' ? Buffer.from(text) : text).toString('hex')
  }
}

const COLON = Buffer.from(':')

function explainMd5Failure(md5: Digest): Digest {
  return (bytes) => {
    try {
      return md5(bytes)
    } catch (error) {
      const message = 'SASL DIGEST-MD5 needs MD5, which the OpenSSL of this Node does not offer (FIPS mode?); use TLS'
      throw new AuthFailed(`${message} with a client certificate, or digest auth, instead`, { cause: error })
    }
  }
}

/** Encodes text as the RFC and servers do: as Latin-1 where that can represent it, otherwise as UTF-8. */
function encodeSaslText(text: string): Buffer {
  const latin = [...text].every((character) => (character.codePointAt(0) ?? 0) <= 0xff)
  return Buffer.from(text, latin ? 'latin1' : 'utf8')
}

/**
 * Decodes a token.
 *
 * @throws ConnectionFault for one above the agreed length: it comes from a server that has proved nothing
 */
function decode(token: Uint8Array): string {
  if (token.length <= MAX_TOKEN_BYTES) return Buffer.from(token).toString('utf8')
  throw new ConnectionFault('auth', `the server's SASL token has ${token.length} bytes, more than ${MAX_TOKEN_BYTES}`)
}

const quoteDirective = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`

/** The blanks after a value can match in only one place of the pattern: a token of many blanks would otherwise take quadratic time. */
const DIRECTIVE_PATTERN = /\s*([a-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"\s*|([^",\s]+)\s*|)(?:,|$)/giy

function parseDirectives(text: string): ReadonlyMap<string, string> {
  const directives = new Map<string, string>()
  for (const [, name = '', inQuotes, plain = ''] of text.matchAll(DIRECTIVE_PATTERN)) {
    directives.set(name.toLowerCase(), inQuotes?.replace(/\\(.)/g, '$1') ?? plain)
  }
  return directives
}
