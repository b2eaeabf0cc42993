/** The settings of flows on a board: `board.flowSettings`. They are records, and take effect as `settings.ts` says. */
import { createHash } from 'node:crypto'
import { InvalidArgument, NotFound, UnsupportedCapability } from '../../core/errors.ts'
import { assertOptions, defined } from '../../core/options.ts'
import { toDate } from '../../core/time.ts'
import type { BoardRecords } from '../records/board-records.ts'
import { changeRecord } from '../records/change-record.ts'
import {
  type DeclarationOptions,
  type DeclarationReport,
  toDeclaration,
  toDeclaredMark,
  toDeclaredVersion,
  type WantedRecord,
  writeDeclared,
} from '../records/declared-records.ts'
import type { ReadRecord, RecordStore } from '../records/record-store.ts'
import { FLOW_SETTINGS, type FlowSettingsRecord } from './record.ts'
import { type AppliedSetting, FlowRules } from './rules.ts'
import {
  assertFlowPattern,
  assertSettingKeys,
  type FlowSettingKey,
  type FlowSettingValues,
  type StoredSettings,
  toStoredSettings,
} from './settings.ts'

/** The settings of a flow or pattern, as `flowSettings.list` returns them. */
export interface FlowSettingsView {
  /** The flow, or the pattern: a prefix followed by `*`. */
  readonly flow: string
  /** The settings; times are in milliseconds. Absent if they cannot be read here. */
  readonly settings?: StoredSettings
  /** Who has set them, when, and why. */
  readonly by?: string
  readonly since?: Date
  readonly reason?: string
  /** The owner that declares them when it starts, and the version of its declaration. */
  readonly declared?: { readonly owner: string; readonly version: number }
  /** Why they cannot be read. */
  readonly error?: Error
}

/** The options of `flowSettings.set` and `unset`. */
export interface ChangeSettingsOptions {
  /** The person or program that asks for it; the name of this process by default. */
  readonly by?: string | undefined
  /** The reason, for people; the former one stays if none is given. */
  readonly reason?: string | undefined
}

/** The settings of a flow, as a program declares them. */
export interface DeclaredSettings extends FlowSettingValues {
  /** The version of the declaration; 0 by default. A lower one than that on the board changes nothing. */
  readonly version?: number
  /** The reason, for people. */
  readonly reason?: string
}

/** The settings of flows of a program, by flow or pattern. */
export interface DeclaredFlowSettings extends DeclarationOptions<DeclaredSettings> {}

/** The parts of a board on which settings are stored. */
export interface FlowSettingsHost {
  /** The URI without a password, for messages. */
  readonly uri: string
  readonly who: string
  /** Whether other programs claim jobs of the board; known once it is open. */
  readonly shared: boolean
  readonly records: BoardRecords
  now(): number
  /** Resolves when {@link now} is the servers' time. @throws NotConnected */
  readClock(): Promise<void>
  /** Takes in that this process has changed settings: its next post has them. */
  changed(): Promise<void>
}

const MAX_TEXT = 1_000

/** Parses the option `flowSettings` of a conductor. @throws InvalidArgument */
export function toDeclaredFlowSettings(options: DeclaredFlowSettings): Required<DeclaredFlowSettings> {
  const declaration = toDeclaration(options, { what: 'flowSettings', example: "{ 'report*': { maxAttempts: 7 } }" })
  toWanted(declaration.declare)
  return declaration
}

/** The settings of flows on a board: `board.flowSettings`. */
export class FlowSettings {
  readonly #host: FlowSettingsHost
  readonly #store: RecordStore<FlowSettingsRecord>

  /** @internal Use `board.flowSettings`. */
  constructor(host: FlowSettingsHost) {
    this.#host = host
    this.#store = host.records.of(FLOW_SETTINGS)
  }

  /** Returns what is set, ordered by flow and pattern. @throws UnsupportedCapability, NotConnected */
  async list(): Promise<FlowSettingsView[]> {
    this.#assertSupported()
    return (await this.#store.list()).map(toView)
  }

  /**
   * Returns the settings that apply to a flow: for each key its value, and the flow or pattern in whose record it is.
   *
   * @throws UnsupportedCapability, NotConnected; the error of a record that cannot be read here
   * @example const { maxAttempts } = await board.flowSettings.of('report')   // { value: 7, from: 'report*', force: false }
   */
  async of(flow: string): Promise<Readonly<Partial<Record<FlowSettingKey, AppliedSetting>>>> {
    this.#assertSupported()
    const { applied, unreadable } = new FlowRules(await this.#store.list()).ruleOf(flow)
    if (unreadable) throw unreadable
    return Object.fromEntries(applied)
  }

  /**
   * Sets some settings of a flow, or of all flows with a prefix: `'report*'`, `'*'`. The others stay. For each key, a flow has the value of its own
   * record, else that of the longest pattern. A caller of `post` replaces them, unless `force` is set. They replace what the flow's code says.
   *
   * Conductors know a change with their next claim; processes that only post know it after at most 30 s. If conductors declare settings of the
   * same flow or pattern, these stay until their declaration changes.
   *
   * @throws InvalidArgument; UnsupportedCapability, NotConnected, OutcomeUnknown
   * @example await board.flowSettings.set('report*', { maxAttempts: 7, queue: 'bulk' }, { reason: 'they are slow on Mondays' })
   */
  async set(pattern: string, values: FlowSettingValues, options: ChangeSettingsOptions = {}): Promise<void> {
    assertFlowPattern(pattern)
    assertChange(options, 'flowSettings.set')
    const added = toStoredSettings(pattern, values)
    if (Object.keys(added).length === 0)
      throw new InvalidArgument(`settings of flow ${pattern}: give at least one, as in { maxAttempts: 7 }`)
    await this.#change(pattern, options, (settings) => {
      const { force: _, ...others } = settings
      return values.force === false ? { ...others, ...added } : { ...settings, ...added }
    })
  }

  /**
   * Removes settings of a flow or pattern: those with these keys, or all.
   *
   * @throws NotFound if none of them is set; InvalidArgument, UnsupportedCapability, NotConnected, OutcomeUnknown
   * @example await board.flowSettings.unset('report*', { keys: ['queue'] })
   */
  async unset(
    pattern: string,
    { keys, ...options }: ChangeSettingsOptions & { readonly keys?: readonly (keyof FlowSettingValues)[] } = {},
  ): Promise<void> {
    assertFlowPattern(pattern)
    assertChange(options, 'flowSettings.unset')
    if (keys !== undefined) assertSettingKeys(keys, 'flowSettings.unset')
    let removed = 0
    await this.#change(pattern, options, (settings, found) => {
      const left = Object.entries(settings).filter(([key]) => keys && !keys.some((each) => each === key))
      removed = found && !keys ? 1 : Object.keys(settings).length - left.length
      return Object.fromEntries(left)
    })
    if (removed > 0) return
    const what = keys ? keys.join(' and ') : 'nothing'
    throw new NotFound(`settings of flow ${pattern}: ${what} ${keys ? 'is not set' : 'is set'}`)
  }

  /** @internal Sets what a conductor declares when it starts. @throws InvalidArgument: then nothing is set */
  async declare({ declare, owner, prune }: Required<DeclaredFlowSettings>): Promise<DeclarationReport> {
    const settings = toWanted(declare)
    await this.#prepare()
    const by = { by: this.#host.who, at: this.#host.now() }
    const wanted = settings.map((each) => ({ ...each, value: { ...each.value, ...by } }))
    const report = await writeDeclared(wanted, { owner, prune, store: this.#store, digestOf })
    await this.#host.changed()
    return report
  }

  async #change(
    pattern: string,
    { by = this.#host.who, reason }: ChangeSettingsOptions,
    change: (settings: StoredSettings, found: boolean) => StoredSettings,
  ): Promise<void> {
    await this.#prepare()
    const at = this.#host.now()
    await changeRecord(this.#store, pattern, (found) => {
      const former = found && !('error' in found) ? found.value : undefined
      const settings = change(former?.settings ?? {}, found !== undefined)
      const isEmpty = Object.keys(settings).every((key) => key === 'force')
      if (isEmpty) return found ? undefined : 'keep'
      return { settings, by, at, ...defined({ reason: reason ?? former?.reason }), ...toDeclaredMark(found) }
    })
    await this.#host.changed()
  }

  async #prepare(): Promise<void> {
    this.#assertSupported()
    await this.#host.readClock()
  }

  #assertSupported(): void {
    if (!this.#host.shared) return
    throw new UnsupportedCapability(`board ${this.#host.uri} has no settings of flows: other programs claim its jobs`, {
      capability: 'flow settings',
    })
  }
}

/** Checks declared settings. @throws InvalidArgument */
function toWanted(
  declare: DeclaredFlowSettings['declare'],
): WantedRecord<Pick<FlowSettingsRecord, 'settings' | 'reason'>>[] {
  return Object.entries(declare).map(([id, declared]) => {
    const { version, reason, ...values }: DeclaredSettings = Object(declared)
    assertFlowPattern(id)
    assertChange(defined({ reason }), `settings of flow ${id}`)
    const settings = toStoredSettings(id, values)
    const value = { settings, ...defined({ reason }) }
    return { id, version: toDeclaredVersion(version, `settings of flow ${id}`), value }
  })
}

/** Returns a digest of the settings, without who has set them. */
function digestOf({ settings, reason }: Pick<FlowSettingsRecord, 'settings' | 'reason'>): string {
  const sorted = Object.entries(settings).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify([sorted, reason]))
    .digest('hex')
    .slice(0, 32)
}

function toView(record: ReadRecord<FlowSettingsRecord>): FlowSettingsView {
  if ('error' in record) return { flow: record.id, error: record.error }
  const { settings, by, at, reason, declared } = record.value
  const declaration = declared && { owner: declared.owner, version: declared.version }
  return { flow: record.id, settings, by, since: toDate(at), ...defined({ reason, declared: declaration }) }
}

/** @throws InvalidArgument */
function assertChange(options: ChangeSettingsOptions, what: string): void {
  assertOptions<ChangeSettingsOptions>(options, { by: true, reason: true }, what)
  for (const [name, text] of Object.entries(options))
    if (
      text !== undefined &&
      (typeof text !== 'string' || text === '' || text.length > MAX_TEXT || !text.isWellFormed())
    )
      throw new InvalidArgument(`${what}: ${name} must be a text of 1 to ${MAX_TEXT} characters`)
}
