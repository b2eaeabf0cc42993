/**
 * The manifests for Kubernetes, as far as that goes without a cluster: they fit the types of its API, they fit each other,
 * what they start answers their probes, and the query for KEDA counts what it should.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Deployment } from 'kubernetes-types/apps/v1.js'
import type { ConfigMap, Container, HTTPGetAction, PodSpec } from 'kubernetes-types/core/v1.js'
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.js'
import pg from 'pg'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { toMilliseconds } from '../../src/core/time.ts'
import { openBoard } from '../../src/index.ts'
import { createCliFolder, FLOWS, killRemaining } from '../cli/workplace.ts'
import { readPage } from '../docs/pages.ts'
import { ROOT } from '../support/build.ts'
import { freePort } from '../support/ports.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import type { ScaledObject, TriggerAuthentication } from './keda.ts'

/** The modules of the types, by the kinds of manifests. */
const TYPES = {
  Deployment: 'kubernetes-types/apps/v1',
  ConfigMap: 'kubernetes-types/core/v1',
  PodDisruptionBudget: 'kubernetes-types/policy/v1',
  TriggerAuthentication: relativeToCheck('test/docker/keda.ts'),
  ScaledObject: relativeToCheck('test/docker/keda.ts'),
} as const

interface Manifests {
  readonly Deployment: Deployment
  readonly ConfigMap: ConfigMap
  readonly PodDisruptionBudget: PodDisruptionBudget
  readonly TriggerAuthentication: TriggerAuthentication
  readonly ScaledObject: ScaledObject
}

/** The folder in which the types are checked has two levels below the root. */
function relativeToCheck(file: string): string {
  return join('../..', file)
}

const FOLDER = join(ROOT, 'docker/k8s')

async function readManifests(): Promise<Manifests> {
  const entries = await readdir(FOLDER, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')))
  const documents = texts.flatMap((text) => parseAllDocuments(text))
  expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([])
  const found = documents.map((document) => document.toJS() as Manifests[keyof Manifests])
  expect(found.map(({ kind }) => kind).sort()).toEqual(Object.keys(TYPES).sort())
  return Object.fromEntries(found.map((manifest) => [manifest.kind, manifest])) as unknown as Manifests
}

const manifests = await readManifests()
const { Deployment: deployment, ConfigMap: config, ScaledObject: scaling } = manifests
const pod: PodSpec = deployment.spec?.template.spec ?? { containers: [] }
const [container = {} as Container] = pod.containers
const settings = parse(config.data?.['jobboard.yaml'] ?? '') as { flows: string; conductor: Record<string, string> }

let folder: string

beforeAll(async () => {
  await mkdir(join(ROOT, '.test'), { recursive: true })
  folder = await mkdtemp(join(ROOT, '.test/k8s-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))
afterAll(killRemaining)

/** Returns what the compiler finds wrong with manifests as literals of their types: unknown fields, too. */
async function complaints(wanted: Readonly<Record<string, object>>): Promise<string[]> {
  const lines = Object.entries(wanted).flatMap(([kind, manifest]) => [
    `import type { ${kind} } from '${TYPES[kind as keyof typeof TYPES]}'`,
    `export const ${kind.toLowerCase()}: ${kind} = ${JSON.stringify(manifest, undefined, 2)}`,
  ])
  const file = join(folder, 'manifests.ts')
  await writeFile(file, lines.join('\n'))
  const program = ts.createProgram([file], {
    ...{
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      target: ts.ScriptTarget.ES2022,
    },
    ...{ strict: true, noEmit: true, skipLibCheck: true, allowImportingTsExtensions: true, types: [] },
  })
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))
}

describe('the types of the API', () => {
  test('fit each manifest', async () => {
    expect(await complaints({ ...manifests })).toEqual([])
  })

  test('would find a misspelt field, and a value of a wrong type', async () => {
    const text = JSON.stringify(deployment)
    const misspelt = JSON.parse(text.replace('terminationGracePeriodSeconds', 'terminationGraceSeconds')) as object
    expect((await complaints({ Deployment: misspelt })).join()).toContain('terminationGraceSeconds')
    const wrong = JSON.parse(text.replace('"replicas":2', '"replicas":"2"')) as object
    expect((await complaints({ Deployment: wrong })).join()).toContain("'string' is not assignable to type 'number'")
    const { targetQueryValue } = scaling.spec.triggers[0]?.metadata ?? {}
    const number = JSON.parse(
      JSON.stringify(scaling).replace(`"${targetQueryValue}"`, String(targetQueryValue)),
    ) as object
    expect((await complaints({ ScaledObject: number })).join()).toContain("'number' is not assignable to type 'string'")
  })
})

describe('the manifests', () => {
  test('know each other', () => {
    const labels = deployment.spec?.template.metadata?.labels
    for (const selector of [deployment.spec?.selector, manifests.PodDisruptionBudget.spec?.selector])
      expect(selector?.matchLabels).toEqual(labels)
    expect(pod.volumes?.find(({ name }) => name === 'config')?.configMap?.name).toBe(config.metadata?.name)
    expect(scaling.spec.scaleTargetRef.name).toBe(deployment.metadata?.name)
    const [trigger] = scaling.spec.triggers
    expect(trigger?.authenticationRef.name).toBe(manifests.TriggerAuthentication.metadata.name)
    // A conductor more for each so many jobs: as many as it runs at once.
    expect(trigger?.metadata.targetQueryValue).toBe(String(settings.conductor['concurrency']))
    const mounted = container.volumeMounts?.map(({ name }) => name)
    expect(mounted?.sort()).toEqual(pod.volumes?.map(({ name }) => name).sort())
    const [{ mountPath = '' } = {}] = container.volumeMounts ?? []
    expect(container.env).toEqual([{ name: 'JOBBOARD_CONFIG', value: `${mountPath}/jobboard.yaml` }])
  })

  test('use the Secrets that the guide creates, with the keys that it puts there', async () => {
    const { text } = await readPage('docs/guides/deploying.md')
    const secrets = [...text.matchAll(/^kubectl create secret generic (\S+) \\\n((?: {2}--from-literal=.*\n)+)/gm)]
    const keys = new Map(
      secrets.map(([, name = '', lines = '']) => [name, [...lines.matchAll(/literal=(\w+)=/g)].map(([, key]) => key)]),
    )
    const used = container.envFrom?.map(({ secretRef }) => secretRef?.name ?? '') ?? []
    const [{ name, key } = { name: '', key: '' }] = manifests.TriggerAuthentication.spec.secretTargetRef
    expect([...keys]).toEqual([
      [used[0], ['JOBBOARD_BOARD', 'JOBBOARD_PERSISTENCE']],
      [name, [key]],
    ])
  })

  test('leave conductors the time to drain and to abort', () => {
    const { drainTimeout, abortTimeout } = settings.conductor
    const needed = [drainTimeout, abortTimeout].map((time) => toMilliseconds(time as '25s', 'time'))
    expect((pod.terminationGracePeriodSeconds ?? 0) * 1_000).toBeGreaterThan((needed[0] ?? 0) + (needed[1] ?? 0))
  })

  test('give them no right that they do not need', () => {
    expect(pod).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsNonRoot: true } })
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  test('have names, quantities and ports as the API takes them', () => {
    for (const { metadata } of Object.values(manifests))
      expect(metadata?.name).toMatch(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/)
    const { requests = {}, limits = {} } = container.resources ?? {}
    for (const quantity of [...Object.values(requests), ...Object.values(limits)])
      expect(quantity).toMatch(/^\d+(m|Ki|Mi|Gi)?$/)
    expect(container.ports).toEqual([
      { name: 'health', containerPort: Number(settings.conductor['health']?.split(':')[1]) },
    ])
  })

  test('are named in the guide, each file', async () => {
    const files = (await readdir(FOLDER, { recursive: true })).filter((name) => name.endsWith('.yaml'))
    const { text } = await readPage('docs/guides/deploying.md')
    for (const file of files) expect(text).toContain(relative(ROOT, join(FOLDER, file)))
  })
})

describe('with a board in Postgres', () => {
  let postgres: PostgresServer
  let uri: string

  beforeAll(async () => {
    postgres = await startPostgres()
    uri = `${postgres.uri}?board=crawler`
  })
  afterAll(() => postgres?.[Symbol.asyncDispose]())

  test('what they start answers their probes, reads their settings, and ends when it is asked to', async () => {
    await using place = await createCliFolder({ board: uri })
    const port = String(await freePort())
    await place.write('flows.js', FLOWS)
    const text = config.data?.['jobboard.yaml'] ?? ''
    await place.write(
      'mounted/jobboard.yaml',
      text.replace('8080', port).replace(settings.flows, join(place.cwd, 'flows.js')),
    )
    const env = { JOBBOARD_CONFIG: join(place.cwd, 'mounted/jobboard.yaml'), JOBBOARD_PERSISTENCE: postgres.uri }
    const conductor = place.start(container.args ?? [], { env })
    onTestFinished(() => void conductor.process.kill('SIGKILL'))
    await conductor.says('health at')
    for (const probe of [container.livenessProbe, container.readinessProbe]) {
      const { path, port: name }: Partial<HTTPGetAction> = probe?.httpGet ?? {}
      expect(name).toBe(container.ports?.[0]?.name)
      expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(200)
    }
    conductor.process.kill('SIGTERM')
    expect(await conductor.ended).toMatchObject({ exitCode: 0 })
  })

  test('the query counts the jobs that run or could run, with the rights that the guide grants', async () => {
    await using board = await openBoard(uri)
    await using other = await openBoard(`${postgres.uri}?board=other`)
    await other.post('crawl', {})
    const { blocks } = await readPage('docs/guides/deploying.md')
    const grants = blocks.find(({ language, code }) => language === 'sql' && code.includes('scaler'))?.code ?? ''
    const admin = new pg.Client({ connectionString: postgres.uri })
    await admin.connect()
    onTestFinished(() => admin.end())
    await admin.query(grants.replace('DATABASE jobs', 'DATABASE postgres'))
    const { username } = new URL(connectionOf(await readPage('docs/guides/deploying.md')))
    const scaler = new pg.Client({ connectionString: postgres.uri.replace('postgres@', `${username}@`) })
    await scaler.connect()
    onTestFinished(() => scaler.end())
    const query = scaling.spec.triggers[0]?.metadata.query ?? ''
    const counted = async () => Number((await scaler.query<{ count: string }>(query)).rows[0]?.count)

    expect(await counted()).toBe(0)
    const first = await board.post('crawl', {})
    await board.post('crawl', {})
    await board.post('crawl', {}, { delay: '1h' })
    await board.post('crawl', {}, { after: [first] })
    expect(await counted()).toBe(2)
    const [claim] = await board.claimNext()
    expect(await counted()).toBe(2)
    await board.pause()
    expect(await counted()).toBe(1)
    await claim?.consume()
    expect(await counted()).toBe(0)
    await board.resume()
    // The other one, and the one that came after the first.
    expect(await counted()).toBe(2)
    await expect(scaler.query('SELECT body FROM jobboard.jobs')).rejects.toThrow('permission denied')
  })
})

/** Returns the connection string that the guide puts into the Secret of the scaler. */
function connectionOf({ text }: { readonly text: string }): string {
  return /--from-literal=connection='([^']+)'/.exec(text)?.[1] ?? ''
}
