/** When a session raises what fences begin at, and to what. */
import { expect, test } from 'vitest'
import { FenceBase } from '../../../../../src/board/backends/zookeeper/store/fence-base.ts'
import type { GateSnapshot } from '../../../../../src/board/backends/zookeeper/store/gate.ts'
import { InvalidState } from '../../../../../src/core/errors.ts'

const SECOND = 1_000_000_000n
const NOW_MS = 1_800_000_000_000
const NOW = BigInt(NOW_MS) * 1_000_000n

/** A gate on a server that takes a write only at the version it has. */
class Server {
  gate: GateSnapshot = { version: 0, paused: false, fenceBase: 0n, limits: 0 }
  now = NOW_MS
  writes = 0
  readonly fences = new FenceBase({
    path: '/board/.gate',
    now: () => this.now,
    raise: async (seen, fenceBase) => {
      await undefined
      if (seen.version === this.gate.version) {
        this.writes += 1
        this.gate = { ...seen, version: seen.version + 1, fenceBase }
      }
      return this.gate
    },
  })
}

test('a base that is behind the clock is raised so that the next fence is the clock', async () => {
  const server = new Server()
  const zxid = (7n << 32n) + 5n
  const gate = await server.fences.ensureValid(server.gate, { session: 1n, zxid })
  expect(gate).toMatchObject({ version: 1, fenceBase: NOW - zxid, limits: 0 })
})

test('a session examines the base once; the next session does so again', async () => {
  const server = new Server()
  let gate = await server.fences.ensureValid(server.gate, { session: 1n, zxid: 1n })
  server.now += 3_600_000
  gate = await server.fences.ensureValid(gate, { session: 1n, zxid: 2n })
  expect(server.writes).toBe(1)
  gate = await server.fences.ensureValid(gate, { session: 2n, zxid: 3n })
  expect(server.writes).toBe(2)
  expect(gate.fenceBase + 3n).toBe(NOW + 3_600n * SECOND)
})

test('a base that is less than a second behind, or ahead of the clock, is left as it is', async () => {
  const server = new Server()
  const [behind, ahead] = [NOW - SECOND / 2n, NOW + 3_600n * SECOND]
  for (const [session, fenceBase] of [
    [1n, behind],
    [2n, ahead],
  ] as const) {
    server.gate = { ...server.gate, fenceBase }
    expect(await server.fences.ensureValid(server.gate, { session, zxid: 1n })).toBe(server.gate)
  }
  expect(server.writes).toBe(0)
})

test('another base than was examined is examined too: the gate was made again', async () => {
  const server = new Server()
  await server.fences.ensureValid(server.gate, { session: 1n, zxid: 1n })
  server.gate = { version: 0, paused: false, fenceBase: 0n, limits: 0 }
  expect((await server.fences.ensureValid(server.gate, { session: 1n, zxid: 9n })).fenceBase).toBe(NOW - 9n)
})

test('who loses the race for the gate takes what the other wrote', async () => {
  const server = new Server()
  const seen = server.gate
  server.gate = { version: 4, paused: true, fenceBase: NOW, limits: 0 }
  expect(await server.fences.ensureValid(seen, { session: 1n, zxid: 1n })).toBe(server.gate)
  expect(server.writes).toBe(0)
})

test('claims that begin together wait for one raise', async () => {
  const server = new Server()
  const seen = server.gate
  const at = { session: 1n, zxid: 1n }
  const gates = await Promise.all([1, 2, 3].map(() => server.fences.ensureValid(seen, at)))
  expect(new Set(gates).size).toBe(1)
  expect(server.writes).toBe(1)
})

test('a base that no clock can have given, or that cannot be read, is refused and stays as it is', async () => {
  const server = new Server()
  const year = 31_536_000n * SECOND
  for (const [gate, why] of [
    [{ ...server.gate, fenceBase: 99_999_999_999_999_999_999n, limits: 0 }, 'is years ahead'],
    [{ ...server.gate, fenceBase: NOW + 11n * year, limits: 0 }, 'is years ahead'],
    [{ ...server.gate, damage: 'it is not JSON' }, 'it is not JSON'],
  ] as const) {
    const examining = server.fences.ensureValid(gate, { session: 1n, zxid: 1n })
    await expect(examining).rejects.toThrow(InvalidState)
    await expect(examining).rejects.toThrow(/^\/board\/\.gate is damaged: /)
    await expect(examining).rejects.toThrow(why)
  }
  expect(server.writes).toBe(0)
  const ahead = { ...server.gate, fenceBase: NOW + year, limits: 0 }
  expect(await server.fences.ensureValid(ahead, { session: 1n, zxid: 1n })).toBe(ahead)
})
