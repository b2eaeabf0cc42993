/**
 * Access with a name and a password (HTTP Basic). The file has a line for each person, made by `jobboard ui password`:
 *
 *     ada:scrypt$16384$8$1$SALT$HASH:admin:values
 *     bob:scrypt$16384$8$1$SALT$HASH:admin@urgent,read@bulk
 */
import { type BinaryLike, createHmac, randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { InvalidArgument } from '../../core/errors.ts'
import { LEVELS, type Level } from '../wire/session.ts'
import type { Access, Authenticator } from './access.ts'
import { SignInLimits } from './sign-in-limits.ts'

const hashWithScrypt = promisify<BinaryLike, BinaryLike, number, ScryptOptions, Buffer>(scrypt)

const COST = { N: 16_384, r: 8, p: 1 } as const
const HASH_BYTES = 32
const MAX_PASSWORD = 1_000
/** The passwords that are remembered as right, so that not every request computes a hash. */
const MAX_REMEMBERED = 1_000

interface Person {
  readonly access: Access
  readonly cost: { readonly N: number; readonly r: number; readonly p: number }
  readonly salt: Buffer
  readonly hash: Buffer
}

/** Returns the line of a person for the file. @throws InvalidArgument */
export async function passwordLine(
  name: string,
  password: string,
  { level, values = false }: Omit<Access, 'who'>,
): Promise<string> {
  if (!/^[^\s:]{1,100}$/.test(name))
    throw new InvalidArgument('a name has no blank and no colon, and at most 100 characters')
  if (password.length < 8 || password.length > MAX_PASSWORD)
    throw new InvalidArgument(`a password has 8 to ${MAX_PASSWORD} characters`)
  const salt = randomBytes(16)
  const { N, r, p } = COST
  const hash = await hashWithScrypt(password, salt, HASH_BYTES, { N, r, p })
  const stored = ['scrypt', N, r, p, salt.toString('base64url'), hash.toString('base64url')].join('$')
  return [name, stored, level, ...(values ? ['values'] : [])].join(':')
}

/** Returns access by the names and passwords of a file. @param text the content of the file. @throws InvalidArgument naming the line that is wrong */
export function basicAccess(text: string): Authenticator {
  const people = parsePeople(text)
  if (people.size === 0)
    throw new InvalidArgument('the file of passwords has no line; jobboard ui password NAME makes one')
  const [someone] = people.values()
  const known = new Map<string, Access>()
  const key = randomBytes(32)
  const limits = new SignInLimits()
  return {
    authorize: async (request, client) => {
      const [name, password] = credentialsOf(request) ?? []
      if (name === undefined || password === undefined) return undefined
      const mark = createHmac('sha256', key).update(`${name}\0${password}`).digest('base64')
      const remembered = known.get(mark)
      if (remembered) return remembered
      const person = people.get(name)
      // A hash is computed for an unknown name, too: otherwise the time of the answer would tell which names there are.
      const { salt, hash, cost } = person ?? (someone as Person)
      const access = await limits.run(client, async () => {
        const computed = await hashWithScrypt(password, salt, hash.length, cost)
        return timingSafeEqual(computed, hash) ? person?.access : undefined
      })
      if (!access) return undefined
      if (known.size >= MAX_REMEMBERED) known.clear()
      known.set(mark, access)
      return access
    },
    challenge: 'Basic realm="jobboard", charset="UTF-8"',
    advice: 'sign in with a name and a password of the file',
  }
}

function credentialsOf(request: Request): [name: string, password: string] | undefined {
  const [, encoded] = /^Basic +([A-Za-z0-9+/=]{1,4000})$/i.exec(request.headers.get('authorization') ?? '') ?? []
  if (encoded === undefined) return undefined
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  if (colon < 1 || text.length - colon > MAX_PASSWORD) return undefined
  return [text.slice(0, colon), text.slice(colon + 1)]
}

/** Parses the lines of the file. @throws InvalidArgument */
function parsePeople(text: string): Map<string, Person> {
  const people = new Map<string, Person>()
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    const person = parsePerson(line)
    if (!person) {
      const form = `NAME:scrypt$…:LEVEL or NAME:scrypt$…:LEVEL@BOARD,LEVEL@BOARD, with a level of ${LEVELS.join(', ')}`
      throw new InvalidArgument(
        `line ${index + 1} of the file of passwords must be ${form}; jobboard ui password makes it`,
      )
    }
    people.set(person.access.who, person)
  }
  return people
}

function parsePerson(line: string): Person | undefined {
  const [who = '', stored = '', level = '', right, ...more] = line.split(':')
  const [word, n, r, p, salt = '', hash = '', ...rest] = stored.split('$')
  const cost = { N: Number(n), r: Number(r), p: Number(p) }
  const isCost =
    Object.values(cost).every(Number.isInteger) && cost.N >= 1_024 && cost.N <= 65_536 && cost.r <= 16 && cost.p <= 8
  const levels = parseLevels(level)
  if (word !== 'scrypt' || rest.length > 0 || more.length > 0 || who === '' || !isCost || !levels) return undefined
  if (right !== undefined && right !== 'values') return undefined
  const [saltBytes, hashBytes] = [Buffer.from(salt, 'base64url'), Buffer.from(hash, 'base64url')]
  if (saltBytes.length < 8 || hashBytes.length < 16) return undefined
  const access: Access = { who, ...levels, values: right === 'values' }
  return { access, cost, salt: saltBytes, hash: hashBytes }
}

/** Parses a level, or a list of `LEVEL@BOARD`; undefined for anything else. */
function parseLevels(text: string): Pick<Access, 'level' | 'boards'> | undefined {
  const isLevel = (level: string): level is Level => (LEVELS as readonly string[]).includes(level)
  if (isLevel(text)) return { level: text }
  const boards: [string, Level][] = []
  for (const part of text.split(',')) {
    const at = part.indexOf('@')
    const [level, board] = [part.slice(0, at), part.slice(at + 1)]
    if (at < 0 || !isLevel(level) || board === '' || boards.some(([name]) => name === board)) return undefined
    boards.push([board, level])
  }
  // Requests that belong to no board need only the level `read`.
  return { level: 'read', boards: Object.fromEntries(boards) }
}
