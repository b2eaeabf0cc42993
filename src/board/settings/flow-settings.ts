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
  assertStorable,
  type FlowSettingKey,
  type FlowSettingValues,
  SETTING_KEYS,
  type StoredSettings,
  toStoredSettings,
} from './settings.ts'

/** The settings of a flow or pattern, as `flowSettings.list` returns them. */
export interface FlowSettingsView {
  /** The flow, or the pattern: a prefix followed by `*`. */
  readonly flow: string
  /** The settings; times are in milliseconds. Absent if they cannot be read here. */
  readonly settings?: StoredSettings
  /** Who has changed the record last, when, and why. */
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
  /** The reason of this change, for people. */
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
  /** Whether programs of TaskFlow claim jobs of the board, too; known once it is open. */
  readonly shared: boolean
  readonly records: BoardRecords
  now(): number
  /** Resolves when {@link now} is the servers' time. @throws NotConnected */
  readClock(): Promise<void>
  /** Called after a change: the next post and the next claim of this process have it. */
  refresh(): Promise<void>
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
    const inOrder = SETTING_KEYS.flatMap((key) => {
      const setting = key === 'force' ? undefined : applied.get(key)
      return setting ? [[key, setting] as const] : []
    })
    return Object.fromEntries(inOrder)
  }

  /**
   * Sets some settings of a flow, or of all flows with a prefix: `'report*'`, `'*'`. Settings that are not given stay, and so do other parts of
   * `backOff`. Each setting of a flow is looked up alone: in the record of the flow, then in the record of the longest pattern that has this setting. Settings
   * override the flow's code, and options of `post` override settings, unless the record has `force`.
   *
   * Conductors use a change from their next claim, processes that only post after at most 30 s. If conductors declare settings of the same flow or
   * pattern, what is set here stays until their declaration changes.
   *
   * @throws InvalidArgument; UnsupportedCapability, NotConnected, OutcomeUnknown; the error of a record that cannot be read here: nothing was changed
   * @example await board.flowSettings.set('report*', { maxAttempts: 7, queue: 'bulk' }, { reason: 'they are slow on Mondays' })
   */
  async set(pattern: string, values: FlowSettingValues, options: ChangeSettingsOptions = {}): Promise<void> {
    assertFlowPattern(pattern)
    assertChange(options, 'flowSettings.set')
    const { force, ...added } = toStoredSettings(pattern, values)
    await this.#change(pattern, options, (former) => {
      const { force: before, backOff, ...others } = former?.settings ?? {}
      const parts = { ...backOff, ...added.backOff }
      const settings = { ...others, ...added, ...(backOff || added.backOff ? { backOff: parts } : {}) }
      const isForced = force ?? (values.force === false ? undefined : before)
      assertStorable(pattern, settings)
      return { ...settings, ...defined({ force: isForced }) }
    })
  }

  /**
   * Removes settings of a flow or pattern: those with these keys, or all.
   *
   * @returns the removed ones
   * @throws NotFound if none of them is set; InvalidArgument, UnsupportedCapability, NotConnected, OutcomeUnknown; with `keys`, the error of a record
   *   that cannot be read here
   * @example await board.flowSettings.unset('report*', { keys: ['queue'] })
   */
  async unset(
    pattern: string,
    { keys, ...options }: ChangeSettingsOptions & { readonly keys?: readonly (keyof FlowSettingValues)[] } = {},
  ): Promise<readonly (keyof FlowSettingValues)[]> {
    assertFlowPattern(pattern)
    assertChange(options, 'flowSettings.unset')
    if (keys === undefined) return this.#remove(pattern)
    assertSettingKeys(keys)
    let removed: readonly (keyof FlowSettingValues)[] = []
    await this.#change(pattern, options, (former) => {
      const settings: StoredSettings = former?.settings ?? {}
      removed = keys.filter((key) => settings[key] !== undefined)
      if (removed.length === 0) return 'keep'
      return Object.fromEntries(Object.entries(settings).filter(([name]) => !keys.some((key) => key === name)))
    })
    if (removed.length > 0) return removed
    throw new NotFound(`settings of flow ${pattern}: ${keys.join(', ')} ${keys.length === 1 ? 'is' : 'are'} not set`)
  }

  /** Removes a record, also one that cannot be read here. Returns the settings that it had. @throws NotFound */
  async #remove(pattern: string): Promise<readonly (keyof FlowSettingValues)[]> {
    await this.#prepare()
    let settings: StoredSettings = {}
    const wasThere = await changeRecord(this.#store, pattern, (found) => {
      settings = found && !('error' in found) ? found.value.settings : {}
      return undefined
    })
    await this.#host.refresh()
    if (!wasThere) throw new NotFound(`settings of flow ${pattern}: nothing is set`)
    return SETTING_KEYS.filter((key) => settings[key] !== undefined)
  }

  /** @internal Sets what a conductor declares when it starts. @throws InvalidArgument: then nothing is set */
  async declare({ declare, owner, prune }: Required<DeclaredFlowSettings>): Promise<DeclarationReport> {
    const settings = toWanted(declare)
    await this.#prepare()
    const by = { by: this.#host.who, at: this.#host.now() }
    const wanted = settings.map((each) => ({ ...each, value: { ...each.value, ...by } }))
    const report = await writeDeclared(wanted, { owner, prune, store: this.#store, digestOf })
    await this.#host.refresh()
    return report
  }

  /** Changes a record; removes it if nothing but `force` is left. @throws the error of a record that cannot be read here */
  async #change(
    pattern: string,
    { by = this.#host.who, reason }: ChangeSettingsOptions,
    change: (former: FlowSettingsRecord | undefined) => StoredSettings | 'keep',
  ): Promise<void> {
    await this.#prepare()
    const origin = { by, at: this.#host.now(), ...defined({ reason }) }
    await changeRecord(this.#store, pattern, (found) => {
      if (found && 'error' in found) throw found.error
      const former = found?.value
      const settings = change(former)
      if (settings === 'keep') return 'keep'
      if (Object.keys(settings).every((key) => key === 'force')) return found ? undefined : 'keep'
      const isSwitched = settings.enabled !== former?.settings.enabled
      const switched = isSwitched || !former ? origin : (former.switched ?? originOf(former))
      return {
        ...{ settings, ...origin },
        ...defined({ switched: settings.enabled === undefined ? undefined : switched }),
        ...toDeclaredMark(found),
      }
    })
    await this.#host.refresh()
  }

  async #prepare(): Promise<void> {
    this.#assertSupported()
    await this.#host.readClock()
  }

  #assertSupported(): void {
    if (!this.#host.shared) return
    throw new UnsupportedCapability(
      `board ${this.#host.uri} has no settings of flows, because it is shared with TaskFlow: use options of posts`,
      {
        capability: 'flow settings',
      },
    )
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
    assertStorable(id, settings)
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

function originOf({ by, at, reason }: FlowSettingsRecord): NonNullable<FlowSettingsRecord['switched']> {
  return { by, at, ...defined({ reason }) }
}
