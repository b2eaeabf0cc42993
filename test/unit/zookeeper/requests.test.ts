import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BadVersion, NoNode, ZooKeeperError } from '../../../src/zookeeper/errors.ts'
import { JuteReader, JuteWriter, MalformedBytes } from '../../../src/zookeeper/jute.ts'
import { multi, op } from '../../../src/zookeeper/multi.ts'
import type { Stat } from '../../../src/zookeeper/records.ts'
import * as requests from '../../../src/zookeeper/requests.ts'

const stat: Stat = {
  czxid: 2n ** 62n,
  mzxid: -1n,
  ctime: 1_700_000_000_000,
  mtime: 1_700_000_000_001,
  version: 3,
  cversion: 4,
  aversion: 5,
  ephemeralOwner: -(2n ** 63n),
  dataLength: 6,
  numChildren: 7,
  pzxid: 8n,
}

function writeStat(writer: JuteWriter): JuteWriter {
  writer.long(stat.czxid).long(stat.mzxid).long(BigInt(stat.ctime)).long(BigInt(stat.mtime))
  writer.int(stat.version).int(stat.cversion).int(stat.aversion).long(stat.ephemeralOwner)
  return writer.int(stat.dataLength).int(stat.numChildren).long(stat.pzxid)
}

const reading = (writer: JuteWriter) => new JuteReader(Buffer.from(writer.finish()))

/** The frame's parts that every request has. */
function header(frame: Buffer): { length: number; xid: number; opcode: number; body: JuteReader } {
  const reader = new JuteReader(frame)
  return { length: reader.int(), xid: reader.int(), opcode: reader.int(), body: reader }
}

describe('a request', () => {
  test('says its length, its number and its operation', () => {
    const { frame } = requests.setData('/a', Buffer.from('xyz'), 9)
    requests.numberFrame(frame, 77)
    const { length, xid, opcode, body } = header(frame)
    expect({ length, xid, opcode }).toEqual({ length: frame.length - 4, xid: 77, opcode: 5 })
    expect(body.text()).toBe('/a')
    expect(String(body.bytes())).toBe('xyz')
    expect(body.int()).toBe(9)
    expect(body.remaining).toBe(0)
  })

  test('is numbered from 1 and starts there again after the largest number', () => {
    expect(requests.xidAfter(0)).toBe(1)
    expect(requests.xidAfter(41)).toBe(42)
    expect(requests.xidAfter(2 ** 31 - 1)).toBe(1)
  })

  test('is not changed by what becomes of the data afterwards', () => {
    const data = Buffer.from('before')
    const { frame } = requests.setData('/a', data, -1)
    data.fill('x')
    expect(frame.includes('before')).toBe(true)
  })

  test('to create says flags and ACL', () => {
    const { frame } = requests.create('/a', null, { ephemeral: true, sequential: true })
    const { body } = header(frame)
    expect([body.text(), body.bytes(), body.int()]).toEqual(['/a', null, 1])
    expect([body.int(), body.text(), body.text(), body.int()]).toEqual([31, 'world', 'anyone', 3])
  })

  test('to arm watches leaves the three kinds of one-shot watches empty', () => {
    const { frame, xid } = requests.setWatches({ persistent: ['/p'], recursive: ['/r', '/s'] }, 5n)
    const { body } = header(frame)
    expect(xid).toBe(-8)
    expect(body.long()).toBe(5n)
    const lists = Array.from({ length: 5 }, () => body.vector(4, () => body.text()))
    expect(lists).toEqual([[], [], [], ['/p'], ['/r', '/s']])
  })
})

describe('an answer', () => {
  test('with a Stat keeps all 64 bits', () => {
    expect(requests.exists('/a').read(reading(writeStat(new JuteWriter())), 0n)).toEqual(stat)
  })

  test('to getData copies a few bytes out of a large chunk, and shares many', () => {
    const answer = writeStat(new JuteWriter().bytes(Buffer.from('few'))).finish()
    const chunk = Buffer.alloc(65_536)
    answer.copy(chunk)
    const { data } = requests.getData('/a').read(new JuteReader(chunk), 0n)
    expect(String(Buffer.from(data ?? []))).toBe('few')
    expect(data?.buffer.byteLength).toBe(3)
    const large = Buffer.concat([writeStat(new JuteWriter().bytes(Buffer.alloc(60_000, 7))).finish()])
    const shared = requests.getData('/a').read(new JuteReader(large), 0n).data
    expect(shared?.buffer === large.buffer).toBe(true)
  })

  test('cut short or changed anywhere is read, or refused as malformed, and never anything else', () => {
    const whole = {
      getData: writeStat(new JuteWriter().bytes(Buffer.from('abc'))).finish(),
      create: writeStat(new JuteWriter().text('/a')).finish(),
      getChildren: children(['x', 'y']),
      multi: multiAnswer([1, 5, 2]),
    }
    const shapes = {
      getData: requests.getData('/a'),
      create: requests.create('/a', null, {}),
      getChildren: requests.getChildren('/a'),
      multi: multi([op.create('/a', null), op.setData('/a', null), op.delete('/a')]),
    }
    const name = fc.constantFrom('getData' as const, 'create' as const, 'getChildren' as const, 'multi' as const)
    fc.assert(
      fc.property(
        name,
        fc.nat(),
        fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { maxLength: 4 }),
        (which, cut, changes) => {
          const bytes = Buffer.from(whole[which])
          for (const [at, byte] of changes) bytes[at % bytes.length] = byte
          const read = () => shapes[which].read(new JuteReader(bytes.subarray(0, cut % (bytes.length + 1))), 1n)
          try {
            read()
          } catch (error) {
            expect(error instanceof MalformedBytes || error instanceof ZooKeeperError).toBe(true)
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

function children(names: readonly string[]): Buffer {
  const writer = new JuteWriter()
  writer.vector(names, (name) => writer.text(name))
  return writeStat(writer).finish()
}

function multiAnswer(types: readonly number[]): Buffer {
  const writer = new JuteWriter()
  for (const type of types) {
    writer.int(type).boolean(false).int(0)
    if (type === 1) writer.text('/a')
    if (type === 15) writeStat(writer.text('/a'))
    if (type === 5) writeStat(writer)
  }
  return writer.int(-1).boolean(true).int(-1).finish()
}

function failedMulti(codes: readonly number[]): Buffer {
  const writer = new JuteWriter()
  for (const code of codes) writer.int(-1).boolean(false).int(code).int(code)
  return writer.int(-1).boolean(true).int(-1).finish()
}

describe('the answer to a multi', () => {
  const ops = [op.create('/a', null), op.setData('/b', null), op.delete('/c')]

  test('has one result per operation, whichever kind of create it comes as', () => {
    for (const create of [1, 15]) {
      const answer = multi(ops).read(new JuteReader(multiAnswer([create, 5, 2])), 99n)
      expect(answer).toEqual({ zxid: 99n, results: [{ path: '/a' }, stat, undefined] })
    }
  })

  test.each([
    [[-101, -2, -2], 0, NoNode, '/a'],
    [[0, -103, -2], 1, BadVersion, '/b'],
    [[0, 0, -101], 2, NoNode, '/c'],
  ])('of %j blames the operation that was refused', (codes, index, type, path) => {
    const read = () => multi(ops).read(new JuteReader(failedMulti(codes)), 1n)
    expect(read).toThrow(type)
    expect(read).toThrow(expect.objectContaining({ index, path, outcome: 'refused' }))
  })

  test('with too few or too many results is malformed', () => {
    for (const types of [
      [1, 5],
      [1, 5, 2, 2],
    ]) {
      expect(() => multi(ops).read(new JuteReader(multiAnswer(types)), 1n)).toThrow(MalformedBytes)
    }
  })
})
