import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FrameReader } from '../../../src/zookeeper/protocol/frames.ts'
import { JuteWriter, MalformedBytes } from '../../../src/zookeeper/protocol/jute.ts'

function stream(payloads: readonly Uint8Array[]): Buffer {
  const writer = new JuteWriter()
  for (const payload of payloads) writer.bytes(payload)
  return writer.finish()
}

function drain(frames: FrameReader): Buffer[] {
  const read: Buffer[] = []
  for (let frame = frames.next(); frame; frame = frames.next()) read.push(frame)
  return read
}

const payloads = [Buffer.from('one'), Buffer.from('second'), Buffer.from('3')]

describe('frames', () => {
  test('come out whole wherever the stream was split', () => {
    const bytes = stream(payloads)
    for (let split = 0; split <= bytes.length; split++) {
      const frames = new FrameReader(100)
      frames.add(bytes.subarray(0, split))
      const first = drain(frames)
      frames.add(bytes.subarray(split))
      expect([...first, ...drain(frames)].map(String), `split at ${split}`).toEqual(['one', 'second', '3'])
    }
  })

  test('come out whole when every byte comes alone', () => {
    const frames = new FrameReader(100)
    const read: Buffer[] = []
    for (const byte of stream(payloads)) {
      frames.add(Buffer.from([byte]))
      read.push(...drain(frames))
    }
    expect(read.map(String)).toEqual(['one', 'second', '3'])
  })

  test('come out whole from chunks of any size', () => {
    const some = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 20 })
    fc.assert(
      fc.property(some, fc.array(fc.nat({ max: 400 })), (sent, cuts) => {
        const frames = new FrameReader(300)
        const read: Buffer[] = []
        let rest = stream(sent)
        for (const cut of [...cuts, rest.length]) {
          frames.add(rest.subarray(0, cut))
          rest = rest.subarray(cut)
          read.push(...drain(frames))
        }
        frames.add(rest)
        read.push(...drain(frames))
        expect(read.map((frame) => [...frame])).toEqual(sent.map((payload) => [...payload]))
      }),
    )
  })

  test.each([0, -1, 101, 2 ** 31 - 1])('a length of %i is refused as soon as it is there', (length) => {
    const frames = new FrameReader(100)
    frames.add(new JuteWriter().int(length).finish())
    expect(() => frames.next()).toThrow(MalformedBytes)
  })
})
