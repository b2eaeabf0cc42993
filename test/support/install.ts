/** How a server that a test needs gets onto this machine: a container, the program that is here, or its package. */
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, rename, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { hostname, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { doOnce, whenFree } from './process-lock.ts'

const run = promisify(execFile)

/** One for the machine: apt-get fails where another one runs, also one for other packages or of another checkout. */
const INSTALL_LOCK = join(tmpdir(), 'jobboard-tests-install.lock')

/** A kind of server: what it is called in JOBBOARD_SKIP, and what it needs where there is no container engine. */
export interface Provision {
  readonly name: string
  /** Debian's packages. */
  readonly packages: readonly string[]
  /** Whether everything needed is on this machine. */
  readonly installed: () => Promise<boolean>
}

export type Way = 'container' | 'program' | 'install' | 'skip'

export interface Facts {
  /** A container engine does, and its containers can use this machine's network. */
  readonly engineAnswers: boolean
  readonly installed: boolean
  readonly debian: boolean
  readonly root: boolean
  /** JOBBOARD_NO_INSTALL=1 */
  readonly mayInstall: boolean
  /** Named in JOBBOARD_SKIP. */
  readonly mayBeMissing: boolean
}

/** @throws Error saying exactly what to do, when the server cannot be had and may not be missing */
export function chooseWay(provision: Pick<Provision, 'name' | 'packages'>, facts: Facts): Way {
  if (facts.engineAnswers) return 'container'
  if (facts.installed) return 'program'
  if (facts.mayBeMissing) return 'skip'
  if (facts.debian && facts.root && facts.mayInstall) return 'install'
  const { name, packages } = provision
  const command = `apt-get install --no-install-recommends -y ${packages.join(' ')}`
  const how = facts.debian
    ? `run (as root): ${command}`
    : `install it (on Debian: ${command}) or start a container engine such as Docker`
  throw new Error(
    `the tests need ${name}, which is not on this machine: ${how}; or leave it out with JOBBOARD_SKIP=${name}`,
  )
}

/**
 * Finds out what there is, installs what is missing if that is the way, and says which way it was.
 *
 * @param options.here a container will not do, because it is no server that is needed
 */
export async function provide(provision: Provision, options: { readonly here?: boolean } = {}): Promise<Way> {
  // A package that is being installed by another process has some of its files already.
  await whenFree(INSTALL_LOCK)
  const facts = await factsAbout(provision)
  const way = chooseWay(provision, options.here ? { ...facts, engineAnswers: false } : facts)
  if (way === 'install')
    await doOnce({ lock: INSTALL_LOCK, isDone: provision.installed, work: () => install(provision) })
  return way
}

async function factsAbout(provision: Provision): Promise<Facts> {
  const { JOBBOARD_NO_INSTALL, JOBBOARD_SKIP = '' } = process.env
  const [engineAnswers, installed, debian] = await Promise.all([
    containerEngineAnswers(),
    provision.installed(),
    exists('/etc/debian_version'),
  ])
  return {
    engineAnswers,
    installed,
    debian,
    root: process.getuid?.() === 0,
    mayInstall: JOBBOARD_NO_INSTALL !== '1',
    mayBeMissing: JOBBOARD_SKIP.split(',').some((name) => name.trim() === provision.name),
  }
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** The program's path, if it is on PATH. */
export async function which(program: string): Promise<string | undefined> {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, program)
    if (
      await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return path
  }
  return undefined
}

const ENGINE_TIMEOUT_MS = 2_000

let engineAnswered: Promise<boolean> | undefined

/** Asks once in a process: tests start many servers. */
function containerEngineAnswers(): Promise<boolean> {
  engineAnswered ??= askEngine(process.env['DOCKER_HOST'])
  return engineAnswered
}

/**
 * Resolves to whether a container engine answers there whose containers can use this machine's network. They cannot where the
 * engine runs in a virtual machine (Docker Desktop) or elsewhere, where this process is in a container itself, or where the
 * engine has a network namespace of its own (rootless): servers in containers would listen where no test can reach them.
 *
 * Asks the engine itself: a client without an engine is common, and takes seconds to say so.
 */
export function askEngine(where = 'unix:///var/run/docker.sock'): Promise<boolean> {
  const target = where.startsWith('unix://')
    ? { socketPath: where.slice('unix://'.length) }
    : { host: new URL(where).hostname, port: new URL(where).port }
  return new Promise((resolve) => {
    const asking = request({ ...target, path: '/info', timeout: ENGINE_TIMEOUT_MS }, (answer) => {
      text(answer).then(
        (info) => resolve(answer.statusCode === 200 && sharesNetwork(info)),
        () => resolve(false),
      )
    })
    asking.on('timeout', () => asking.destroy(new Error('no answer')))
    asking.on('error', () => resolve(false))
    asking.end()
  })
}

/** @param info the engine's answer to `GET /info` */
function sharesNetwork(info: string): boolean {
  try {
    const { Name, SecurityOptions } = JSON.parse(info) as { Name?: unknown; SecurityOptions?: unknown }
    const options: readonly unknown[] = Array.isArray(SecurityOptions) ? SecurityOptions : []
    return Name === hostname() && !options.some((option) => String(option).includes('rootless'))
  } catch {
    return false
  }
}

const POLICY = '/usr/sbin/policy-rc.d'
const POLICY_ASIDE = `${POLICY}.before-jobboard`

async function install({ name, packages }: Provision): Promise<void> {
  process.stderr.write(
    `The tests need ${name}: installing ${packages.join(', ')} with apt-get (JOBBOARD_NO_INSTALL=1 forbids it).\n`,
  )
  // An installation that was killed has left it aside.
  const wasAside = await exists(POLICY_ASIDE)
  const hadPolicy = wasAside || (await exists(POLICY))
  if (hadPolicy && !wasAside) await rename(POLICY, POLICY_ASIDE)
  try {
    // Debian starts a service as soon as it is installed; 101 tells it not to.
    await writeFile(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
    const args = ['install', '--no-install-recommends', '-y', ...packages]
    await aptGet(args).catch(async () => {
      await aptGet(['update'])
      await aptGet(args)
    })
  } finally {
    await rm(POLICY, { force: true })
    if (hadPolicy) await rename(POLICY_ASIDE, POLICY)
  }
}

async function aptGet(args: readonly string[]): Promise<void> {
  // Another program of this machine, such as its updates, may be at it.
  await run('apt-get', ['-o', 'DPkg::Lock::Timeout=120', ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
}
