/** Writes what a board on Redis keeps, and publishes on its channel, as everyone can who has the rights to do so. */
import { createHash } from 'node:crypto'
import { encodePlain } from '../../src/core/codec.ts'
import type { RedisPlace } from '../board/backends/redis/places.ts'
import type { Random } from '../support/random.ts'
import { BATCH, CANCELLATION, ENDED, ENTITY, ODD_TEXTS, TRASH } from './real.ts'
import type { RecordMaker } from './records.ts'

/** No job that the board makes itself has such an id. */
const NO_JOB = 'job1'

export async function plantFields(place: RedisPlace, make: RecordMaker, random: Random): Promise<void> {
  const { observer, key } = place
  const id = await place.putRaw(make.posting())
  const at = random.between(0, 1e9)
  await observer.hset(key('trash'), id, behind(`${at}:`, make.record(TRASH)))
  await observer.zadd(key('trashed'), at, id)
  await observer.hset(key('entities'), id, behind('x:y:', make.record(ENTITY)))
  const odd = () => random.pick(ODD_TEXTS)
  const field = random.next() < 0.7 ? id : odd()
  const writes: readonly (() => Promise<unknown>)[] = [
    () => observer.hset(key('jobs'), odd(), Buffer.from(make.posting())),
    () =>
      observer.hset(
        key('rows'),
        field,
        random.pick([odd(), `${odd()}:1:1:`, `0:${odd()}:1:`, `0:1:1:${odd()}`, '0:1:1:x+']),
      ),
    () => observer.hset(key('held'), field, random.pick([odd(), `x:${odd()}`, `${odd()}:y`])),
    () => observer.hset(key('granted'), field, Buffer.from(make.record({ 0: ['a'], 1: ['b'] }))),
    () => observer.hset(key('exclusive'), odd(), odd()),
    () => observer.hset(key('shared'), odd(), odd()),
    () => observer.hset(key('keys'), odd(), random.pick([odd(), `${odd()}:u`])),
    () => observer.hset(key('cancels'), field, Buffer.from(make.record(CANCELLATION))),
    () => observer.hset(key('trash'), odd(), behind(random.pick([odd(), `${odd()}:`]), make.record(TRASH))),
    () => observer.zadd(key('trashed'), random.pick(SCORES), odd()),
    () => observer.zadd(key('order'), random.pick(SCORES), field),
    () => observer.zadd(key('resting'), random.pick(SCORES), field),
    () => observer.zadd(key('windows'), random.pick(SCORES), odd()),
    () => observer.zadd(key('uuids'), 0, random.pick([odd(), `${odd()}:${odd()}`])),
    () => observer.zadd(key('owners'), random.pick(SCORES), odd()),
    () => observer.hset(key('entities'), odd(), behind(random.pick([odd(), `${odd()}:y:`]), make.record(ENTITY))),
    async () => {
      const uuid = `batch${random.between(1, 20)}`
      const state = random.pick([odd(), '1:1:0:0:0:0:', `1:0:${odd()}:0:${odd()}:1:`, `${odd()}:1:0:0:0:0:x`])
      await observer.hset(key('batches'), uuid, Buffer.from(make.record(BATCH)), `${uuid}:state`, state)
      await observer.zadd(key('batch-order'), random.pick(SCORES), uuid)
    },
    () => observer.zadd(key('batch-jobs'), 0, random.pick([odd(), `${odd()}:o:${odd()}`, `batch1:f:${odd()}`])),
    async () => {
      const uuid = `ended${random.between(1, 20)}`
      await observer.hset(key('history'), uuid, Buffer.from(make.record(ENDED)))
      await observer.zadd(key('ended'), random.pick(SCORES), random.pick([uuid, odd()]))
    },
    () => observer.hset(key('waits'), field, random.pick([odd(), `1=${odd()};`, `${odd()}~${id};`])),
    () => observer.zadd(key('dependents'), 0, random.pick([odd(), `${id}:${odd()}`])),
    () =>
      observer.hset(
        key('records'),
        `${random.pick(RECORDS)}/${odd()}`,
        behind(random.pick(['1:', odd()]), make.record(RECORD)),
      ),
    () => observer.hset(key('slots'), random.pick(['planted/1', odd()]), odd()),
    () => observer.zadd(key('rates'), random.pick(SCORES), random.pick(['planted/1', odd()])),
    () => observer.hset(key('intervals'), random.pick(['planted/1', odd()]), odd()),
    () => observer.multi().rpush(key('log'), change(odd, random)).hincrby(key('board'), 'version', 1).exec(),
  ]
  for (let count = random.between(0, 3); count > 0; count -= 1) await random.pick(writes)()
}

/**
 * Publications: of anybody, who signs nothing; and of one who has read the secret of the board. Signed ones have no changes
 * that are still to come: those would be believed, and they have to be.
 */
export async function publishForged({ observer, key }: RedisPlace, make: RecordMaker, random: Random): Promise<void> {
  const [version, secret] = await observer.hmget(key('board'), 'version', 'secret')
  const odd = () => random.pick(ODD_TEXTS)
  const entries = Array.from({ length: random.between(0, 4) }, () => change(odd, random))
  // So long past that the board has seen it, however busy it is.
  const former = encodePlain([Number(version) - random.between(10_000, 20_000), entries], 'msgpack')
  const odder = encodePlain([random.pick([Number(version) + 1, make.value()]), noEntries(make.value())], 'msgpack')
  const content = random.pick([former, odder, make.record({ version, entries }), odder.subarray(1)])
  const signed = behind(signature(content, secret ?? ''), content)
  const real = encodePlain([Number(version) + random.between(-2, 3), entries], 'msgpack')
  const message = random.pick([
    real,
    make.damaged(real),
    content,
    signed,
    signed,
    make.damaged(signed),
    new Uint8Array(),
  ])
  await observer.publish(key('changes'), Buffer.from(message))
}

/** Returns the value, changed if it is a list of texts: that is what a board publishes. */
function noEntries(value: unknown): unknown {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string') ? [...value, 0] : value
}

/** The hash that says what the board is: its format, pause, version, numbers and secret. */
export async function damageBoardHash(
  { observer, key }: RedisPlace,
  random: Random,
): Promise<{
  plant(make: RecordMaker): Promise<unknown>
  mend(): Promise<unknown>
}> {
  const real = await observer.hgetall(key('board'))
  const fields = ['format', 'paused', 'version', 'sequence', 'fence', 'secret']
  return {
    plant: async (make) => {
      const value = random.next() < 0.7 ? random.pick(ODD_TEXTS) : Buffer.from(make.record({ version: 1 }))
      if (random.next() < 0.1) await observer.hdel(key('board'), random.pick(fields))
      else await observer.hset(key('board'), random.pick(fields), value)
    },
    // Without its numbers it begins them anew, by the clock.
    mend: async () => {
      await observer.multi().hdel(key('board'), 'sequence', 'fence').hset(key('board'), real).exec()
    },
  }
}

const RECORDS = ['schedule', 'limit', 'limit-hold', 'outline', 'once']
const RECORD = { id: 'planted/raw', value: encodePlain({ format: 1, value: { by: 'w', at: 0 } }, 'msgpack') }

const SCORES = ['-inf', 'inf', '0', '1.5', '-1', '1e300', String(2 ** 52), String(2 ** 53)]

/** An entry of the log, of a job that is not there. A pause is not among them: it would be one. */
function change(odd: () => string, random: Random): string {
  const id = random.pick([NO_JOB, odd()])
  const letter = random.pick(['P', 'C', 'A', 'L', 'D', 'T', 'X', 'G0', '', 'z'])
  return random.pick([`${letter}${id}`, `P${id}:${odd()}:${odd()}`, `P${NO_JOB}:1:${Date.now() + 1_000}`])
}

function signature(content: Uint8Array, secret: string): string {
  const sha1 = (data: Uint8Array | string) => createHash('sha1').update(secret).update(data).digest('hex')
  return sha1(sha1(content))
}

function behind(text: string, bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(text), bytes])
}
