/** One client measured, in a process that has nothing else to do: `zookeeper-child.ts NAME HOSTS PATH` prints its rates. */
import { times } from './brief.ts'
import {
  type Client,
  type ClientName,
  type Done,
  type Figures,
  MULTI,
  OPEN,
  type Rates,
  WIDTH,
} from './zookeeper-clients.ts'

const WARM_UP = times(3_000, 600)
const COUNT = times(10_000, 1_000)
const MULTIS_IN_FLIGHT = 10

const [name = '', hosts = '', root = ''] = process.argv.slice(2)
const client = await OPEN[name as ClientName](hosts)
const data = Buffer.alloc(100, 120)

let parents = 0

/** A parent of its own for each measurement. */
async function parent(): Promise<string> {
  const path = `${root}/${parents++}`
  await new Promise<void>((resolve, reject) => {
    client.create(path, data, (error) => (error ? reject(error) : resolve()))
  })
  return path
}

/** How often per second, so many in flight, and what it costs this process. */
function rate(count: number, width: number, step: (n: number, done: Done) => void): Promise<Figures> {
  return new Promise((resolve, reject) => {
    let next = 0
    let left = count
    const begin = performance.now()
    const cpu = process.cpuUsage()
    const done: Done = (error) => {
      if (error) reject(error)
      else if (--left === 0) {
        const { user, system } = process.cpuUsage(cpu)
        resolve({ perSecond: (count * 1_000) / (performance.now() - begin), cpu: (user + system) / count })
      } else if (next < count) step(next++, done)
    }
    while (next < Math.min(width, count)) step(next++, done)
  })
}

async function creates(count: number): Promise<{ figures: Figures; path: string }> {
  const path = await parent()
  return { figures: await rate(count, WIDTH, (n, done) => client.create(`${path}/${n}`, data, done)), path }
}

function reads(path: string, count: number): Promise<Figures> {
  return rate(count, WIDTH, (n, done) => client.read(`${path}/${n}`, done))
}

async function multis(createAll: NonNullable<Client['createAll']>, count: number): Promise<Figures> {
  const path = await parent()
  const { perSecond, cpu } = await rate(count / MULTI, MULTIS_IN_FLIGHT, (n, done) => {
    const paths = Array.from({ length: MULTI }, (_, index) => `${path}/${n * MULTI + index}`)
    createAll(paths, data, done)
  })
  return { perSecond: perSecond * MULTI, cpu: cpu / MULTI }
}

const warm = await creates(WARM_UP)
await reads(warm.path, WARM_UP)
if (client.createAll) await multis(client.createAll, WARM_UP)

const created = await creates(COUNT)
const rates: Rates = {
  creates: created.figures,
  reads: await reads(created.path, COUNT),
  ...(client.createAll ? { multis: await multis(client.createAll, COUNT) } : {}),
}
process.stdout.write(JSON.stringify(rates))
await client.close()
