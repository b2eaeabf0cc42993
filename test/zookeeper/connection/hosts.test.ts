import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { Hosts } from '../../../src/zookeeper/connection/hosts.ts'
import { parseConnectString } from '../../../src/zookeeper/protocol/connect-string.ts'

const first = () => 0

function lab(text: string, names: Record<string, string[]>) {
  const asked: string[] = []
  const resolve = async (host: string) => {
    asked.push(host)
    const addresses = names[host]
    if (!addresses) throw new Error(`getaddrinfo ENOTFOUND ${host}`)
    return addresses
  }
  const hosts = new Hosts(parseConnectString(text).endpoints, { resolve, random: first })
  const next = async () => (await hosts.next()).address
  return { hosts, asked, names, next }
}

/** Names that are resolved when the test says so. */
function slowLab(text: string) {
  const asked: string[] = []
  const waiting = new Map<string, (addresses: string[]) => void>()
  const resolve = (host: string) => {
    asked.push(host)
    return new Promise<string[]>((answer) => waiting.set(host, answer))
  }
  const hosts = new Hosts(parseConnectString(text).endpoints, { resolve, random: first })
  return { hosts, asked, answer: (host: string, address: string) => waiting.get(host)?.([address]) }
}

describe('hosts', () => {
  test('are gone through in one shuffled order, again and again', async () => {
    const { endpoints } = parseConnectString('10.0.0.1,10.0.0.2,10.0.0.3')
    const draws = [0.9, 0.5, 0.1]
    const hosts = new Hosts(endpoints, { random: () => draws.shift() ?? 0 })
    const order: string[] = []
    for (let attempt = 0; attempt < 5; attempt++) order.push((await hosts.next()).host)
    expect(order).toEqual(['10.0.0.3', '10.0.0.2', '10.0.0.1', '10.0.0.3', '10.0.0.2'])
  })

  test('are resolved at every attempt, and all addresses of a name are tried before the next name', async () => {
    const it = lab('a:1,b:2', { a: ['10.0.0.1', '10.0.0.2'], b: ['10.0.1.1'] })
    expect([await it.next(), await it.next(), await it.next()]).toEqual(['10.0.0.1', '10.0.0.2', '10.0.1.1'])
    it.names['a'] = ['10.0.0.9']
    expect([await it.next(), await it.next()]).toEqual(['10.0.0.9', '10.0.1.1'])
    expect(it.asked).toEqual(['a', 'a', 'b', 'a', 'b'])
  })

  test('do not stop at a name that cannot be resolved', async () => {
    const it = lab('gone:1,b:2', { b: ['10.0.1.1'] })
    await expect(it.next()).rejects.toThrow(/gone:1.*ENOTFOUND/)
    expect(await it.next()).toBe('10.0.1.1')
    await expect(it.next()).rejects.toThrow('gone')
  })

  test('can be replaced, and one of them preferred once', async () => {
    const it = lab('a:1', { a: ['10.0.0.1'], b: ['10.0.1.1'], c: ['10.0.2.1'] })
    it.hosts.update(parseConnectString('b:2,c:3').endpoints)
    expect([it.hosts.size, it.hosts.includes({ host: 'a', port: 1 })]).toEqual([2, false])
    it.hosts.prefer({ host: 'c', port: 3, address: '10.0.2.1' })
    expect([await it.next(), await it.next(), await it.next()]).toEqual(['10.0.2.1', '10.0.1.1', '10.0.2.1'])
    expect((await it.hosts.all()).map(({ host }) => host)).toEqual(['b', 'c'])
    expect(() => it.hosts.update([])).toThrow(InvalidArgument)
  })

  test('are asked for once at a time, however many wait for them', async () => {
    const it = slowLab('a:1')
    const all = [it.hosts.next(), it.hosts.next(), it.hosts.all()]
    expect(it.asked).toEqual(['a'])
    it.answer('a', '10.0.0.1')
    await Promise.all(all)
    const again = it.hosts.next()
    it.answer('a', '10.0.0.2')
    expect(await again).toMatchObject({ address: '10.0.0.2' })
    expect(it.asked).toEqual(['a', 'a'])
  })

  test('that take too long to resolve are given up, and the next one is tried', async () => {
    const it = slowLab('slow:1,b:2')
    const giveUp = new AbortController()
    const reason = new Error('too long')
    const next = it.hosts.next({ signal: giveUp.signal })
    giveUp.abort(reason)
    await expect(next).rejects.toBe(reason)
    const second = it.hosts.next()
    it.answer('b', '10.0.1.1')
    expect(await second).toMatchObject({ host: 'b' })
    // It is the first one's turn again, whose name is still being looked for.
    const third = it.hosts.next()
    it.answer('slow', '10.0.0.1')
    expect(await third).toMatchObject({ host: 'slow' })
    expect(it.asked).toEqual(['slow', 'b'])
  })

  test('are not gone to when they were replaced while their names were resolved', async () => {
    const it = slowLab('old:1')
    const next = it.hosts.next()
    it.hosts.update(parseConnectString('10.0.2.1:2').endpoints)
    it.answer('old', '10.0.0.1')
    expect(await next).toEqual({ host: '10.0.2.1', port: 2, address: '10.0.2.1' })
  })
})
