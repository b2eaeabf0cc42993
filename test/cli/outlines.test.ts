/** Flows that are listed and drawn without their code, as conductors have written them to the board. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { flowsTable } from '../../src/cli/output/render/lists.ts'
import { plainPaint } from '../../src/cli/output/render/paint.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, killRemaining } from './workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS)
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

describe.skipIf(!zookeeperHosts)('on ZooKeeper', () => {
  test('flows are listed once a conductor has had them, and drawn', async () => {
    const job = (await place.jobboard(['post', 'hello', '--store', '{"name":"Ada"}'])).stdout.trim()
    expect((await place.jobboard(['flows'])).stdout).toMatch(/^no conductor of zookeeper:.* has had a flow\n$/)
    const early = await place.jobboard(['show', job, '--graph'])
    expect(early).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('add --flows MODULE') })
    for (let n = 0; n < 2; n += 1) await place.jobboard(['conductor', '--flows', 'flows.js', '--burst'])
    const listed = jsonLines((await place.jobboard(['flows', 'hello', '--json'])).stdout)
    expect(listed).toMatchObject([
      { name: 'hello', version: '2.1', nodes: [{ name: 'greet', kind: 'task', next: [1] }, { name: 'print' }] },
    ])
    const table = (await place.jobboard(['flows'])).stdout
    expect(table).toMatch(/NAME +VERSION +CONDUCTORS +TASKS/)
    expect(table).toMatch(/hello +2\.1 +0 +greet, print/)
    const drawn = (await place.jobboard(['flows', 'hello', '--graph'])).stdout
    expect(drawn).toBe('flowchart TD\n  n0["greet"]\n  n1["print"]\n  n0 --> n1\n')
    const coloured = (await place.jobboard(['show', job, '--graph'])).stdout
    expect(coloured).toContain('n0["greet"]:::SUCCESS')
    const svg = (await place.jobboard(['show', job, '--graph', '--format', 'svg'])).stdout
    expect(svg).toMatch(
      /^<svg xmlns="http:\/\/www.w3.org\/2000\/svg"[\s\S]*<title>greet, SUCCESS<\/title>[\s\S]*<\/svg>\n$/,
    )
    const withCode = await place.jobboard(['show', job, '--graph', '--flows', 'flows.js'])
    expect(withCode.stdout).toBe(coloured)
    const unknown = await place.jobboard(['flows', 'goodbye'])
    expect(unknown).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('has had a flow goodbye') })
  })
})

test('the table of flows counts the conductors that have each version', () => {
  const nodes = [{ name: 'greet', kind: 'task', next: [1] }, {}] as const
  const flow = { name: 'hello', version: '2.1', digest: 'x', nodes, since: new Date('2026-06-01T11:00:00Z') }
  const entity = (versions: object) => ({ kind: 'conductor', name: 'c', instance: 'i', metadata: { versions } })
  const conductors = [entity({ hello: ['2.1'] }), entity({ hello: ['1.0'] }), entity({})]
  const unversioned = { ...entity({}), metadata: { flows: ['hello'] } }
  const screen = { paint: plainPaint, width: undefined, now: new Date('2026-06-01T12:00:00Z') }
  expect(flowsTable([flow], { conductors, screen })[1]).toMatch(/^hello +2\.1 +1 +greet +1h/)
  expect(flowsTable([flow], { conductors: [...conductors, unversioned], screen })[1]).toMatch(/^hello +2\.1 +2 +greet/)
})
