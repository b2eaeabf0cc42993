import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { parseConfig, reconfig } from '../../../src/zookeeper/ensemble.ts'
import { readAcls, readIdentities } from '../../../src/zookeeper/protocol/acl.ts'
import { type CreateMode, create } from '../../../src/zookeeper/protocol/create.ts'
import { BadVersion, NoNode, ZooKeeperError } from '../../../src/zookeeper/protocol/errors.ts'
import { JuteReader, JuteWriter, MalformedBytes } from '../../../src/zookeeper/protocol/jute.ts'
import { multi } from '../../../src/zookeeper/protocol/multi.ts'
import { multiRead } from '../../../src/zookeeper/protocol/multi-read.ts'
import { op } from '../../../src/zookeeper/protocol/ops.ts'
import type { Stat } from '../../../src/zookeeper/protocol/records.ts'
import * as requests from '../../../src/zookeeper/protocol/requests.ts'

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

  test.each(['a text', 5, true, { length: 2 }, new Float64Array([1.5])])('cannot be made with %j for data', (data) => {
    const given = data as never
    expect(() => create('/a', given, {})).toThrow(InvalidArgument)
    expect(() => requests.setData('/a', given, -1)).toThrow(InvalidArgument)
    expect(() => multi([op.create('/a', given)])).toThrow(InvalidArgument)
    expect(() => multi([op.check('/a'), op.setData('/b', given)])).toThrow('bytes')
  })

  test('is numbered from 1 and starts there again after the largest number', () => {
    const numbers = new requests.RequestNumbers()
    expect([numbers.next(), numbers.next()]).toEqual([1, 2])
    const largest = new requests.RequestNumbers(2 ** 31 - 2)
    expect([largest.next(), largest.next()]).toEqual([2 ** 31 - 1, 1])
  })

  test('is not changed by what becomes of the data afterwards', () => {
    const data = Buffer.from('before')
    const { frame } = requests.setData('/a', data, -1)
    data.fill('x')
    expect(frame.includes('before')).toBe(true)
  })

  test.each<[CreateMode, number, number, bigint | undefined]>([
    [{}, 15, 0, undefined],
    [{ ephemeral: true }, 15, 1, undefined],
    [{ sequential: true }, 15, 2, undefined],
    [{ ephemeral: true, sequential: true }, 15, 3, undefined],
    [{ container: true }, 19, 4, undefined],
    [{ ttl: '5s' }, 21, 5, 5_000n],
    [{ ttl: 1, sequential: true }, 21, 6, 1n],
  ])('to create %j says which operation and which flags', (mode, opcode, flags, ttl) => {
    const { body, ...rest } = header(create('/a', null, mode).frame)
    expect(rest.opcode).toBe(opcode)
    expect([body.text(), body.bytes(), body.int()]).toEqual(['/a', null, 1])
    expect([body.int(), body.text(), body.text(), body.int()]).toEqual([31, 'world', 'anyone', flags])
    expect(body.remaining > 0 ? body.long() : undefined).toBe(ttl)
    expect(body.remaining).toBe(0)
  })

  test.each<[unknown, string]>([
    [{ container: true, ephemeral: true }, 'a container cannot be ephemeral'],
    [{ container: true, sequential: true }, 'a container cannot be sequential'],
    [{ container: true, ttl: 5 }, 'a container cannot be ttl'],
    [{ ephemeral: true, ttl: 5 }, 'an ephemeral znode cannot have a ttl'],
    [{ ttl: 0 }, 'ttl must be between 1 and'],
    [{ ttl: 2 ** 40 }, 'ttl must be between 1 and'],
    [{ ttl: 'soon' }, 'not a duration'],
  ])('to create %j is refused', (mode, says) => {
    const wrong = mode as CreateMode
    expect(() => create('/a', null, wrong)).toThrow(InvalidArgument)
    expect(() => create('/a', null, wrong)).toThrow(says)
    expect(() => multi([op.create('/a', null, wrong)])).toThrow(says)
  })

  test('to arm watches names the kinds in their order', () => {
    const paths = { data: ['/d'], exist: ['/e'], child: ['/c'], persistent: ['/p'], recursive: ['/r', '/s'] }
    const { frame, xid } = requests.setWatches(paths, 5n)
    const { body } = header(frame)
    expect(xid).toBe(-8)
    expect(body.long()).toBe(5n)
    const lists = Array.from({ length: 5 }, () => body.vector(4, () => body.text()))
    expect(lists).toEqual([['/d'], ['/e'], ['/c'], ['/p'], ['/r', '/s']])
  })

  test('to read says whether it is to be watched', () => {
    for (const read of [requests.exists, requests.getData, requests.getChildren]) {
      for (const watch of [true, false]) {
        const { body } = header(read('/a', { watch }).frame)
        expect([body.text(), body.boolean(), body.remaining]).toEqual(['/a', watch, 0])
      }
    }
  })

  test('to set an ACL can be read back', () => {
    const acl = [
      { permissions: 3, scheme: 'digest', id: 'ada:x' },
      { permissions: 31, scheme: 'ip', id: '10.0.0.0/8' },
    ]
    const { body, opcode } = header(requests.setAcl('/a', acl, 4).frame)
    expect([opcode, body.text(), readAcls(body), body.int(), body.remaining]).toEqual([7, '/a', acl, 4, 0])
  })

  test('to add an identity goes under its own number', () => {
    const { frame, xid } = requests.auth('digest', Buffer.from('ada:secret'))
    const { body, opcode } = header(frame)
    expect([opcode, xid, body.int(), body.text(), String(body.bytes())]).toEqual([100, -4, 0, 'digest', 'ada:secret'])
  })

  test.each([
    ['removeWatches', requests.removeWatches('/a', 'children'), 18, ['/a', 1]],
    ['removeWatches', requests.removeWatches('/a', 'data'), 18, ['/a', 2]],
    ['removeWatches', requests.removeWatches('/a', 'any'), 18, ['/a', 3]],
    ['addWatch', requests.addWatch('/a', 'recursive'), 106, ['/a', 1]],
    ['getACL', requests.getAcl('/a'), 6, ['/a']],
    ['getEphemerals', requests.getEphemerals('/a'), 103, ['/a']],
    ['getAllChildrenNumber', requests.getAllChildrenNumber('/a'), 104, ['/a']],
    ['whoAmI', requests.whoAmI(), 107, []],
  ])('to %s is as the server wants it', (operation, request, opcode, [path, kind]) => {
    const { body, ...rest } = header(request.frame)
    expect([request.operation, rest.opcode]).toEqual([operation, opcode])
    if (path !== undefined) expect(body.text()).toBe(path)
    if (kind !== undefined) expect(body.int()).toBe(kind)
    expect(body.remaining).toBe(0)
  })

  test('to reconfig distinguishes no list from an empty list', () => {
    const { body } = header(reconfig({ joining: ['server.4=a:1:2;3'], leaving: [2, '3'], version: 9n }).frame)
    expect([body.text(), body.text(), body.bytes(), body.long()]).toEqual(['server.4=a:1:2;3', '2,3', null, 9n])
    const members = header(reconfig({ members: ['server.1=a:1:2;3', 'server.2=b:1:2;3'] }).frame).body
    expect([members.bytes(), members.bytes(), members.text(), members.long()]).toEqual([
      null,
      null,
      'server.1=a:1:2;3,server.2=b:1:2;3',
      -1n,
    ])
    expect(() => reconfig({})).toThrow(InvalidArgument)
    expect(() => reconfig({ members: ['x'], leaving: [1] } as never)).toThrow(InvalidArgument)
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
      multiRead: multiReadAnswer(),
      getACL: acls(),
      whoAmI: new JuteWriter().int(1).text('ip').text('::1').finish(),
      getEphemerals: new JuteWriter().int(1).text('/a').finish(),
      reconfig: writeStat(new JuteWriter().bytes(Buffer.from('server.1=a\nversion=1f'))).finish(),
    }
    const shapes = {
      getData: requests.getData('/a'),
      create: create('/a', null, {}),
      getChildren: requests.getChildren('/a'),
      multi: multi([op.create('/a', null), op.setData('/a', null), op.delete('/a')]),
      multiRead: multiRead([op.getData('/a'), op.getChildren('/b'), op.getData('/c')]),
      getACL: requests.getAcl('/a'),
      whoAmI: requests.whoAmI(),
      getEphemerals: requests.getEphemerals('/'),
      reconfig: reconfig({ leaving: [1] }),
    } satisfies Record<keyof typeof whole, unknown>
    const name = fc.constantFrom(...(Object.keys(whole) as (keyof typeof whole)[]))
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

function multiReadAnswer(): Buffer {
  const writer = new JuteWriter().int(4).boolean(false).int(0).bytes(Buffer.from('d'))
  writeStat(writer).int(8).boolean(false).int(0).int(2).text('x').text('y')
  return writer.int(-1).boolean(false).int(-101).int(-101).int(-1).boolean(true).int(-1).finish()
}

function acls(): Buffer {
  return writeStat(new JuteWriter().int(1).int(31).text('world').text('anyone')).finish()
}

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
      const created = create === 15 ? { path: '/a', stat } : { path: '/a' }
      expect(answer).toEqual({ zxid: 99n, results: [created, stat, undefined] })
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

describe('the answer to a multiRead', () => {
  const ops = [op.getData('/a'), op.getChildren('/b'), op.getData('/c')]

  test('has what was read or why it was refused, each in its place', () => {
    const { zxid, results } = multiRead(ops).read(new JuteReader(multiReadAnswer()), 99n)
    expect(zxid).toBe(99n)
    expect(results.slice(0, 2)).toEqual([{ data: new Uint8Array(Buffer.from('d')), stat }, { names: ['x', 'y'] }])
    expect(results[2]?.error).toBeInstanceOf(NoNode)
    expect(results[2]?.error).toMatchObject({ path: '/c', index: 2 })
  })

  test('of another kind than was asked, or of another length, is malformed', () => {
    const swapped = multiRead([op.getChildren('/b'), op.getData('/a'), op.getData('/c')])
    expect(() => swapped.read(new JuteReader(multiReadAnswer()), 1n)).toThrow(MalformedBytes)
    expect(() => multiRead([op.getData('/a')]).read(new JuteReader(multiReadAnswer()), 1n)).toThrow(MalformedBytes)
  })

  test('is never that of a multi: each takes its own kind of operations', () => {
    expect(() => multiRead([op.delete('/a')] as never)).toThrow(InvalidArgument)
    expect(() => multi([op.getData('/a')] as never)).toThrow(InvalidArgument)
  })
})

describe('what an ensemble says of itself', () => {
  test('is read line by line', () => {
    const data = Buffer.from('server.1=a:1:2:participant;3\nserver.2=b:1:2:observer;3\nversion=1000000ab')
    expect(parseConfig({ data, stat })).toEqual({
      servers: ['server.1=a:1:2:participant;3', 'server.2=b:1:2:observer;3'],
      version: 0x1000000abn,
      stat,
    })
    expect(parseConfig({ data: null, stat })).toEqual({ servers: [], version: undefined, stat })
  })

  test('and of its clients', () => {
    const writer = new JuteWriter().int(2).text('digest').text('ada').text('ip').text('127.0.0.1')
    expect(readIdentities(reading(writer))).toEqual([
      { scheme: 'digest', id: 'ada' },
      { scheme: 'ip', id: '127.0.0.1' },
    ])
  })
})
