/** The example of deployments: the same file on ZooKeeper and on Postgres, with a pool, two tenants, a limit and a schedule. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TABLES } from '../../examples/deployments/flows.ts'
import { openBoard } from '../../src/index.ts'
import { ensureBuilt, MAIN, ROOT } from '../support/build.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { createDatabase, type PostgresDatabase } from '../support/postgres-database.ts'

const FOLDER = join(ROOT, 'examples/deployments')

let server: PostgresDatabase
let database: Pool
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  await ensureBuilt()
  server = await createDatabase()
  database = new Pool({ connectionString: server.uri, max: 2 })
  await database.query(TABLES)
  await database.query("insert into orders values ('acme', 3), ('acme', 4), ('umbrella', 5)")
  const [, SHOP_DATABASE] = server.uri.split('://')
  env = { PATH: process.env['PATH'], SHOP_DATABASE, SHOP_ZOOKEEPER: `${zookeeperHosts}${namespace('shop')}` }
})
afterAll(async () => {
  await database?.end()
  await server?.stop()
})

const start = (args: readonly string[]) => spawn(process.execPath, [MAIN, ...args], { cwd: FOLDER, env, stdio: 'pipe' })

async function jobboard(...args: string[]): Promise<string> {
  const child = start(args)
  const [stdout, stderr, [exitCode]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  expect({ args, exitCode, stderr }).toEqual({ args, exitCode: 0, stderr: '' })
  return stdout
}

const BOARDS = {
  staging: () => `zookeeper://${env['SHOP_ZOOKEEPER']}/shop`,
  production: () => `postgres://${env['SHOP_DATABASE']}?board=shop`,
}

test.each([
  ['staging', 'TEST', { letters: 5, 'tenant/umbrella': 1 }],
  ['production', 'EUR', { letters: 20, 'tenant/umbrella': 1 }],
] as const)('%s', async (deployment, currency, limits) => {
  // The address of the example's production is another server's.
  const health = deployment === 'production' ? ['--health', '0'] : []
  const conductor = start(['conductor', '--deployment', deployment, ...health])
  const [log, ended] = [text(conductor.stderr), once(conductor, 'close')]
  const [begun] = await Promise.race([
    once(createInterface(conductor.stdout), 'line'),
    ended.then(async () => [await log]),
  ])
  expect(begun).toContain('runs summary from')
  await using board = await openBoard(BOARDS[deployment]())
  const found = (await board.limits.list()).map(({ key, rate, concurrency }) => [key, rate?.burst ?? concurrency])
  expect(Object.fromEntries(found)).toEqual(limits)
  const schedules = await board.schedules.list()
  expect(schedules.map(({ id, tenant }) => [id, tenant])).toEqual([
    ['summary/acme', 'acme'],
    ['summary/umbrella', 'umbrella'],
  ])
  for (const { id } of schedules) {
    const uuid =
      (await jobboard('schedule', 'trigger', id, '--deployment', deployment)).trim().split(/\s+/).at(-1) ?? ''
    await jobboard('wait', uuid, '--deployment', deployment)
  }
  const { rows } = await database.query<{ text: string }>('select text from summaries where text like $1', [
    `%${currency}`,
  ])
  expect(rows.map((row) => row.text).sort()).toEqual([
    `acme has sold for 7 ${currency}`,
    `umbrella has sold for 5 ${currency}`,
  ])
  conductor.kill('SIGTERM')
  const [exitCode] = await ended
  expect({ exitCode, log: await log }).toMatchObject({ exitCode: 0 })
  expect((await log).includes('"level":20')).toBe(deployment === 'staging')
})

test.each(['staging', 'production'])('config show --effective prints what is expected: %s', async (deployment) => {
  // Without the variables that a test needs: as on a developer's machine.
  const child = spawn(process.execPath, [MAIN, 'config', 'show', '--effective', '--deployment', deployment], {
    ...{ cwd: FOLDER, env: { PATH: process.env['PATH'] } },
  })
  await expect(await text(child.stdout)).toMatchFileSnapshot(join(FOLDER, `config-${deployment}.txt`))
})

test('config check --all finds no mistake', async () => {
  expect(await jobboard('config', 'check', '--all')).toBe(
    'jobboard.yaml has no mistakes, with deployments staging, production\n',
  )
})
