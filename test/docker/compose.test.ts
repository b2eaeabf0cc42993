/** The compose file, as far as that goes without an engine: it parses, and its parts know each other. */
import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { toMilliseconds } from '../../src/core/time.ts'
import { parseUri } from '../../src/core/uri.ts'
import { ROOT } from '../support/build.ts'

interface Service {
  readonly image: string
  readonly build?: { readonly context: string; readonly dockerfile: string }
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: readonly string[]
  readonly ports?: readonly string[]
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly deploy?: { readonly replicas: number }
  readonly stop_grace_period?: string
}

const FOLDER = join(ROOT, 'docker')
const { services, volumes } = parse(await readFile(join(FOLDER, 'compose.yaml'), 'utf8'), { merge: true }) as {
  services: Readonly<Record<string, Service>>
  volumes: Readonly<Record<string, null>>
}
const conductor = services['conductor']

/** What compose knows of a service, as far as it is used: a misspelt key would be refused, or worse, ignored. */
const KEYS = [
  ...['build', 'cap_drop', 'command', 'depends_on', 'deploy', 'environment', 'healthcheck', 'image', 'init', 'ports'],
  ...['read_only', 'restart', 'security_opt', 'stop_grace_period', 'tmpfs', 'volumes'],
]

test('nothing is misspelt', () => {
  const keys = Object.values(services).flatMap((service) => Object.keys(service))
  expect(keys.filter((key) => !KEYS.includes(key))).toEqual([])
})

describe('the ensemble', () => {
  const ensemble = Object.entries(services).filter(([, { image }]) => image.startsWith('zookeeper:'))

  test('is of three, of which each knows itself and the others', () => {
    expect(ensemble.map(([, { environment }]) => environment?.['ZOO_MY_ID'])).toEqual(['1', '2', '3'])
    for (const [name, { environment }] of ensemble) {
      const servers = environment?.['ZOO_SERVERS']?.split(/\s+/)
      expect(servers).toEqual(ensemble.map(([other], index) => `server.${index + 1}=${other}:2888:3888;2181`))
      expect(name).toBe(`zookeeper-${environment?.['ZOO_MY_ID']}`)
    }
  })

  test('is where the conductors look for their board', () => {
    const [, board = ''] = /^\$\{JOBBOARD_BOARD:-(.*)\}$/.exec(conductor?.environment?.['JOBBOARD_BOARD'] ?? '') ?? []
    expect(board).toBe(`zookeeper://${ensemble.map(([name]) => `${name}:2181`).join(',')}/jobs`)
    expect(parseUri(board, 'board').scheme).toBe('zookeeper')
    const logbooks =
      conductor?.environment?.['JOBBOARD_PERSISTENCE']?.replace(/\$\{POSTGRES_PASSWORD\}/, 'secret') ?? ''
    expect(parseUri(logbooks, 'persistence').printable).toBe('postgres://jobboard:***@postgres:5432/jobboard')
  })
})

describe('the conductors', () => {
  test('are two, built from what there is, with flows that are there', async () => {
    expect(conductor?.deploy?.replicas).toBe(2)
    const { context = '', dockerfile = '' } = conductor?.build ?? {}
    await access(join(FOLDER, context, dockerfile))
    const [[source = '', target] = []] = (conductor?.volumes ?? []).map((volume) => volume.split(':'))
    await access(join(FOLDER, source, 'flows.js'))
    expect(target).toBe('/app/flows')
  })

  test('have time to drain and to abort before they are killed', () => {
    const { stop_grace_period: grace = '0s' } = conductor ?? {}
    expect(toMilliseconds(grace, 'stop_grace_period')).toBeGreaterThan(
      toMilliseconds('25s', 'drain') + toMilliseconds('5s', 'abort'),
    )
  })

  test('wait for servers that say when they are ready', () => {
    const waits = Object.entries(conductor?.depends_on ?? {})
    expect(waits.map(([name]) => name).sort()).toEqual(
      Object.keys(services)
        .filter((name) => name !== 'conductor')
        .sort(),
    )
    for (const [name, { condition }] of waits) {
      expect(condition).toBe('service_healthy')
      expect(services[name]?.healthcheck?.test[0], name).toBe('CMD')
    }
  })
})

test('what is kept is declared, and nothing is declared in vain', () => {
  const used = Object.values(services).flatMap((service) =>
    (service.volumes ?? []).map((volume) => volume.split(':')[0]),
  )
  expect(used.filter((name) => !name?.startsWith('.')).sort()).toEqual(Object.keys(volumes).sort())
})

test('ports are open for this machine alone, each once', () => {
  const ports = Object.values(services).flatMap((service) => service.ports ?? [])
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/)
  expect(new Set(ports.map((port) => port.split(':')[1])).size).toBe(ports.length)
})
