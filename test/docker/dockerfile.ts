/** A Dockerfile, read as Docker reads it, and its steps taken by hand in a folder: there need be no engine here. */
import { execFile } from 'node:child_process'
import { cp, mkdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'

export interface Instruction {
  /** In capitals. */
  readonly name: string
  readonly text: string
}

export interface Stage {
  readonly name: string
  readonly image: string
  readonly instructions: readonly Instruction[]
}

export interface Copy {
  /** The stage that it is taken from; else from the context. */
  readonly from: string | undefined
  readonly sources: readonly string[]
  readonly target: string
}

/** @throws Error for a line that is no instruction */
export function stagesOf(dockerfile: string): Stage[] {
  const stages: { name: string; image: string; instructions: Instruction[] }[] = []
  const lines = dockerfile.replace(/^\s*#.*\n/gm, '').replace(/\\\n/g, ' ')
  for (const line of lines.split('\n').filter((text) => text.trim() !== '')) {
    const [, name = '', text = ''] = /^([A-Z]+) +(.+)$/.exec(line) ?? []
    if (name === '') throw new Error(`no instruction: ${line}`)
    const [, image = '', as = ''] = /^(\S+)(?: AS (\S+))?$/.exec(text) ?? []
    if (name === 'FROM') stages.push({ name: as, image, instructions: [] })
    else stages.at(-1)?.instructions.push({ name, text })
  }
  return stages
}

export function copyOf({ text }: Instruction): Copy {
  const words = text.split(/ +/)
  const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length)
  const places = words.filter((word) => !word.startsWith('--'))
  return { from, sources: places.slice(0, -1), target: places.at(-1) ?? '' }
}

/** What an instruction in the exec form runs. @throws Error for the shell form */
export function execForm({ text }: Instruction): string[] {
  const [list] = /\[.*\]$/.exec(text) ?? []
  if (list === undefined) throw new Error(`a shell would run ${text}`)
  return JSON.parse(list) as string[]
}

/**
 * Takes the steps of every stage, each in a folder of its own.
 *
 * @returns the folders, by the names of the stages; the last is the one without
 */
export async function takeSteps(
  stages: readonly Stage[],
  options: { readonly context: string; readonly folder: string },
): Promise<Map<string, string>> {
  const roots = new Map<string, string>()
  for (const stage of stages) {
    const root = join(options.folder, stage.name || 'image')
    roots.set(stage.name, root)
    let cwd = root
    for (const instruction of stage.instructions) {
      const { name, text } = instruction
      if (name === 'WORKDIR') cwd = join(root, text)
      await mkdir(cwd, { recursive: true })
      if (name === 'RUN') await promisify(execFile)('/bin/sh', ['-c', text], { cwd, maxBuffer: 16 * 1_024 * 1_024 })
      if (name === 'COPY')
        await copy(copyOf(instruction), { cwd, source: sourceOf(instruction, roots, options.context) })
    }
  }
  return roots
}

function sourceOf(instruction: Instruction, roots: ReadonlyMap<string, string>, context: string): string {
  const { from } = copyOf(instruction)
  if (from === undefined) return context
  const root = roots.get(from)
  if (root === undefined) throw new Error(`there is no stage ${from} before it`)
  return root
}

async function copy({ sources, target }: Copy, { cwd, source }: { cwd: string; source: string }): Promise<void> {
  for (const name of sources) {
    const into = target.endsWith('/') ? join(cwd, target, basename(name)) : join(cwd, target)
    await mkdir(dirname(into), { recursive: true })
    await cp(join(source, name), into, { recursive: true })
  }
}
