/**
 * Access with a name and a password (HTTP Basic). The file has a line for each person, made by `jobboard ui password`:
 *
 *     ada:scrypt$16384$8$1$SALT$HASH:admin:values
 */
import { type BinaryLike, createHmac, randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { InvalidArgument } from '../../core/errors.ts'
import { Refusal } from '../problem.ts'
import { LEVELS, type Level } from '../wire/session.ts'
import type { Access, Authenticator } from './access.ts'

const hashWithScrypt = promisify<BinaryLike, BinaryLike, number, ScryptOptions, Buffer>(scrypt)

const COST = { N: 16_384, r: 8, p: 1 } as const
const HASH_BYTES = 32
const MAX_PASSWORD = 1_000
/** The checks that run at once, and those that wait: each takes 16 MiB and some 50 ms. */
const MAX_RUNNING = 4
const MAX_WAITING = 100
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
  const queue = new CheckQueue()
  return {
    authorize: async (request) => {
      const [name, password] = credentialsOf(request) ?? []
      if (name === undefined || password === undefined) return undefined
      const mark = createHmac('sha256', key).update(`${name}\0${password}`).digest('base64')
      const remembered = known.get(mark)
      if (remembered) return remembered
      const person = people.get(name)
      // A hash is computed for an unknown name, too: otherwise the time of the answer would tell which names there are.
      const { salt, hash, cost } = person ?? (someone as Person)
      const computed = await queue.run(() => hashWithScrypt(password, salt, hash.length, cost))
      if (!timingSafeEqual(computed, hash) || !person) return undefined
      if (known.size >= MAX_REMEMBERED) known.clear()
      known.set(mark, person.access)
      return person.access
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
      const form = `NAME:scrypt$…:LEVEL, with a level of ${LEVELS.join(', ')}`
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
  const isLevel = (LEVELS as readonly string[]).includes(level)
  if (word !== 'scrypt' || rest.length > 0 || more.length > 0 || who === '' || !isCost || !isLevel) return undefined
  if (right !== undefined && right !== 'values') return undefined
  const [saltBytes, hashBytes] = [Buffer.from(salt, 'base64url'), Buffer.from(hash, 'base64url')]
  if (saltBytes.length < 8 || hashBytes.length < 16) return undefined
  const access: Access = { who, level: level as Level, values: right === 'values' }
  return { access, cost, salt: saltBytes, hash: hashBytes }
}

/** Runs a few checks at once, and refuses more than a hundred that wait: guessed passwords must not use up the machine. */
class CheckQueue {
  #running = 0
  readonly #waiting: (() => void)[] = []

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= MAX_RUNNING) {
      if (this.#waiting.length >= MAX_WAITING) throw new Refusal('TOO_MANY', 'too many sign-ins at once; try again')
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    } else this.#running += 1
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running -= 1
    }
  }
}
