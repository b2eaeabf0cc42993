/** Logbooks that encrypt, in a storage that somebody else writes to: nothing in it is believed that the key did not write. */
import { createCipheriv, createHash, randomBytes, randomUUID } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { describe, expect, onTestFinished } from 'vitest'
import { encode } from '../../../src/core/codec.ts'
import { InvalidArgument, SealedLogbook } from '../../../src/core/errors.ts'
import { parseUri } from '../../../src/core/uri.ts'
import {
  type AtomDetail,
  compressed,
  encrypted,
  type LogbookCodec,
  openPersistence,
  type Persistence,
} from '../../../src/persistence/index.ts'
import { memoryPersistence } from '../../../src/persistence/memory/index.ts'
import { usual as test, variant } from '../../variant.ts'
import { atom, requestOf, written } from '../flows.ts'

const key = randomBytes(32)
const codec = encrypted({ key })
const SECRET = { result: { amount: 1 } }

/** What an attacker writes, who has no key: the type has no seal in it. */
type Forged = AtomDetail & { readonly sealed?: unknown }

interface Storage {
  readonly uri: string
  /** The atom as it lies in the storage. */
  kept(book: string, atom: string): Promise<Forged>
  /** Puts this atom into the storage. */
  forge(book: string, atom: Forged): Promise<void>
}

async function storage(): Promise<Storage> {
  const uri = `memory:${randomUUID()}`
  const raw = memoryPersistence(parseUri(uri, 'persistence'), {})
  await raw.open()
  onTestFinished(() => raw.close())
  let run = 1_000
  return {
    uri,
    kept: async (book, name) => {
      const found = (await raw.getBook(book)).flows[0]?.atoms.find((each) => each.name === name)
      if (!found) throw new Error(`there is no atom ${name}`)
      return written(found)
    },
    forge: async (book, forged) => {
      run += 1
      const log = await raw.acquire(requestOf(book, run))
      await log.write({ atoms: [forged] })
    },
  }
}

async function open(uri: string, by: LogbookCodec | readonly LogbookCodec[] = codec): Promise<Persistence> {
  const persistence = await openPersistence(uri, { codec: by })
  onTestFinished(() => persistence.close())
  return persistence
}

/** Writes the atoms with the key. */
async function record(persistence: Persistence, book: string, atoms: readonly AtomDetail[]): Promise<void> {
  const log = await persistence.acquire(requestOf(book, 1))
  await log.write({ atoms })
}

async function refusals(persistence: Persistence, book: string): Promise<void> {
  await expect(persistence.getBook(book)).rejects.toThrow(SealedLogbook)
  await expect(persistence.acquire(requestOf(book, 2_000))).rejects.toThrow(SealedLogbook)
}

describe('a ciphertext in another place', () => {
  test.each([
    ['of another atom of the flow', 'book', 'audit'],
    ['of an atom of this name in another book', 'other', 'approve'],
  ])('%s is refused', async (_, book, name) => {
    const { uri, kept, forge } = await storage()
    const persistence = await open(uri)
    await record(persistence, 'book', [atom('approve', { result: false }), atom('audit', { result: true })])
    await record(persistence, 'other', [atom('approve', { result: true })])
    await forge('book', { ...(await kept(book, name)), name: 'approve' })
    await refusals(persistence, 'book')
  })

  test('of another flow of the same book is refused', async () => {
    const { uri, kept, forge } = await storage()
    const persistence = await open(uri)
    const { book, ...request } = requestOf('book', 1)
    const log = await persistence.acquire({ ...request, book, flow: { ...request.flow, uuid: 'second' } })
    await log.write({ atoms: [atom('approve', { result: true })] })
    await record(persistence, 'book', [atom('refuse', { result: false })])
    const raw = await kept('book', 'approve')
    await forge('book', raw)
    await refusals(persistence, 'book')
  })

  test('a place whose names run together is another place', () => {
    const bytes = Uint8Array.of(1)
    const sealed = codec.encode(bytes, { book: 'a', flow: 'b', atom: 'c' })
    expect([...codec.decode(sealed, { book: 'a', flow: 'b', atom: 'c' })]).toEqual([1])
    for (const place of [
      { book: 'ab', flow: '', atom: 'c' },
      { book: 'a","b', flow: '', atom: 'c' },
      { book: 'a', flow: 'bc', atom: '' },
      { book: 'b', flow: 'a', atom: 'c' },
    ])
      expect(() => codec.decode(sealed, place)).toThrow('it was changed, or written for another place')
  })
})

describe('what the key did not write', () => {
  const plain: Uint8Array = encode(SECRET, 'msgpack')
  const deflated = compressed().encode(plain, { book: 'book', flow: 'book', atom: 'one' })
  const failure = { name: 'Error', message: 'made up' }

  test.each<[string, Partial<Forged>]>([
    ['a result in plain', SECRET],
    ['a failure in plain', { state: 'FAILURE', failure }],
    ['a failure in plain of an atom that runs', { state: 'RUNNING', failure }],
    ['a checkpoint in plain of an atom that runs', { state: 'RUNNING', checkpoint: { value: 1, at: new Date(0) } }],
    ['a message in plain of an atom that runs', { state: 'RUNNING', progressMessage: 'made up' }],
    ['the history of a retry in plain', { kind: 'retry', history: [{ value: 1, failures: [] }] }],
    ['a success without any result', {}],
    ['a seal by no codec', { sealed: { by: [], bytes: plain } }],
    ['a seal by compression alone', { sealed: { by: ['deflate'], bytes: deflated } }],
    ['a seal without names', { sealed: { bytes: plain } }],
    ['a seal whose name is a number', { sealed: { by: [7], bytes: plain } }],
    ['a seal without bytes', { sealed: { by: ['aes-256-gcm/2'] } }],
    ['a seal that is a text', { sealed: 'aes-256-gcm/2' }],
    ['a seal that is null', { sealed: null }],
  ])('%s is refused', async (_, more) => {
    const { uri, forge } = await storage()
    await forge('book', atom('one', more))
    await refusals(await open(uri), 'book')
  })

  test('beside a seal counts for nothing', async () => {
    const { uri, kept, forge } = await storage()
    const persistence = await open(uri)
    await record(persistence, 'book', [atom('one', SECRET)])
    await forge('book', { ...(await kept('book', 'one')), revertResult: 'made up', failure })
    const [flow] = (await persistence.getBook('book')).flows
    expect(flow?.atoms.map(written)).toEqual([atom('one', SECRET)])
  })

  test('inside of a seal that takes no key is results only', async () => {
    const { uri, forge } = await storage()
    const bytes = encode({ result: 1, state: 'FAILURE', name: 'another' }, 'msgpack')
    await forge('book', { ...atom('one'), sealed: { by: [], bytes } } as Forged)
    const [flow] = (await (await open(uri, compressed())).getBook('book')).flows
    expect(flow?.atoms.map(written)).toEqual([atom('one', { result: 1 })])
  })

  test('an atom that has not ended yet needs no seal', async () => {
    const { uri } = await storage()
    const persistence = await open(uri)
    const atoms = [atom('waits', { state: 'PENDING' }), atom('runs', { state: 'RUNNING' }), atom('done')]
    await record(persistence, 'book', atoms)
    expect((await persistence.getBook('book')).flows[0]?.atoms.map(written)).toEqual(atoms)
  })

  test('is read with require: false, and the refusal says so', async () => {
    const { uri, forge } = await storage()
    await forge('book', atom('one', SECRET))
    const strict = await open(uri)
    await expect(strict.getBook('book')).rejects.toThrow('open them with require: false')
    const lenient = await open(uri, encrypted({ key, require: false }))
    expect((await lenient.getBook('book')).flows[0]?.atoms.map(written)).toEqual([atom('one', SECRET)])
  })

  test('a tag that is shorter, and so can be guessed, is refused', () => {
    const place = { book: 'book', flow: 'flow', atom: 'one' }
    const whole = Buffer.from(codec.encode(Uint8Array.of(1, 2, 3), place))
    for (const length of [0, 4, 16, 31])
      expect(() => codec.decode(whole.subarray(0, length), place)).toThrow(/damaged|key/)
  })
})

describe('records of the first format', () => {
  /** As aes-256-gcm wrote them: nothing in them says where they belong. */
  function unbound(value: object): { by: string[]; bytes: Uint8Array } {
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', key, iv)
    const secret = Buffer.concat([cipher.update(encode(value, 'msgpack')), cipher.final()])
    const id = createHash('sha256').update('jobboard key ').update(key).digest().subarray(0, 4)
    const bytes = Uint8Array.from(Buffer.concat([id, iv, cipher.getAuthTag(), secret]))
    return { by: ['aes-256-gcm'], bytes }
  }

  test('are read until one says otherwise', async () => {
    const { uri, forge } = await storage()
    const old: Forged = { ...atom('one'), sealed: unbound(SECRET) }
    await forge('book', old)
    const persistence = await open(uri)
    expect((await persistence.getBook('book')).flows[0]?.atoms.map(written)).toEqual([atom('one', SECRET)])
    await refusals(await open(uri, encrypted({ key, readUnbound: false })), 'book')
  })

  test('are written no more', async () => {
    const { uri, kept } = await storage()
    await record(await open(uri), 'book', [atom('one', SECRET)])
    expect((await kept('book', 'one')).sealed).toMatchObject({ by: ['aes-256-gcm/2'] })
  })
})

describe('what grows when it is read', () => {
  const HUGE = 80 * 1_024 * 1_024
  const MARK = Uint8Array.of(1)

  variant('a few bytes that become more than 64 MiB are refused, whether compression is asked for or not', async () => {
    const { uri, forge } = await storage()
    const bomb = Buffer.concat([MARK, deflateRawSync(new Uint8Array(HUGE))])
    await forge('book', { ...atom('one'), sealed: { by: ['deflate'], bytes: Uint8Array.from(bomb) } } as Forged)
    const own: LogbookCodec = { name: 'own', encode: (bytes) => bytes, decode: (bytes) => bytes }
    for (const by of [compressed(), own]) {
      const reading = (await open(uri, by)).getBook('book')
      await expect(reading).rejects.toThrow(`more than ${64 * 1_024 * 1_024} bytes when it is inflated`)
    }
  })

  test('a missing codec is named, also where another is required', async () => {
    const { uri, forge } = await storage()
    await forge('book', { ...atom('one'), sealed: { by: ['theirs'], bytes: Uint8Array.of(1) } } as Forged)
    await expect((await open(uri)).getBook('book')).rejects.toThrow('the codec theirs, which was not given')
  })

  test('a codec that is named more than once, or too many of them, are refused', async () => {
    const { uri, forge } = await storage()
    const persistence = await open(uri, compressed())
    const twice = Buffer.concat([
      MARK,
      deflateRawSync(Buffer.concat([MARK, deflateRawSync(encode(SECRET, 'msgpack'))])),
    ])
    for (const by of [['deflate', 'deflate'], Array.from({ length: 9 }, (_, index) => `c${index}`)]) {
      await forge('book', { ...atom('one'), sealed: { by, bytes: Uint8Array.from(twice) } } as Forged)
      await expect(persistence.getBook('book')).rejects.toThrow('the record is damaged')
    }
  })

  test('what is larger than the limit is kept as it is, and read again', () => {
    const place = { book: 'book', flow: 'flow', atom: 'one' }
    const small = compressed({ maxBytes: 1_000 })
    for (const length of [1_000, 1_001]) {
      const kept = small.encode(new Uint8Array(length), place)
      expect(kept.length).toBe(length === 1_000 ? kept.length : 1_002)
      expect(small.decode(kept, place)).toHaveLength(length)
    }
    expect(() => small.decode(compressed().encode(new Uint8Array(1_001), place), place)).toThrow('more than 1000 bytes')
  })
})

test('codecs of one name, too many of them, and options that mean nothing are refused', async () => {
  const own = (name: string): LogbookCodec => ({ name, encode: (bytes) => bytes, decode: (bytes) => bytes })
  const wrong: readonly (readonly [() => unknown, string])[] = [
    [() => openPersistence('memory:', { codec: [compressed(), compressed()] }), 'two codecs have the name deflate'],
    [() => openPersistence('memory:', { codec: [codec, own('aes-256-gcm')] }), 'two codecs have the name aes-256-gcm'],
    [
      () => openPersistence('memory:', { codec: Array.from({ length: 9 }, (_, n) => own(`${n}`)) }),
      'at most 8 codecs can be given',
    ],
    [() => compressed({ maxBytes: 0 }), 'maxBytes must be a whole number from 1, got 0'],
    [() => encrypted({ key, ...JSON.parse('{"require":"no"}') }), 'require must be true or false, got no'],
    [() => encrypted({ key, ...JSON.parse('{"requires":true}') }), 'has no option "requires"'],
  ]
  for (const [call, says] of wrong) {
    const refusal: unknown = await (async () => call())().catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(InvalidArgument)
    expect(String(refusal)).toContain(says)
  }
})
