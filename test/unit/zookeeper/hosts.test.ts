import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { parseConnectString } from '../../../src/zookeeper/connect-string.ts'
import { Hosts } from '../../../src/zookeeper/hosts.ts'

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

  test('do not stop at a name that nobody knows', async () => {
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
})
