/** The dependencies between jobs of a memory board that are not met. */
import { type BackendDependencies, type KnownDependencies, MAX_SHOWN_DEPENDENCIES } from '../../contract/index.ts'
import type { Dependency, DependencyEnd } from '../../model/dependencies.ts'
import type { MemoryBoard } from './store/board.ts'
import type { JobRows } from './store/rows.ts'

export class DependencySteps {
  readonly #rows: JobRows
  /** The jobs that depend on each job, and when the dependency is met. */
  readonly #dependents = new Map<string, Map<string, DependencyEnd>>()
  /** The jobs on which each job still depends. */
  readonly #waitsFor = new Map<string, Set<string>>()

  constructor(rows: JobRows) {
    this.#rows = rows
  }

  /** Returns the ids of jobs that have left the board. */
  findGone(after: readonly Dependency[]): readonly string[] {
    return after.flatMap(({ id }) => (this.#rows.find(id) ? [] : [id]))
  }

  add(id: string, after: readonly Dependency[]): void {
    if (after.length === 0) return
    this.#waitsFor.set(id, new Set(after.map((dependency) => dependency.id)))
    for (const { id: other, on } of after) {
      const dependents = this.#dependents.get(other) ?? new Map<string, DependencyEnd>()
      dependents.set(id, on)
      this.#dependents.set(other, dependents)
    }
  }

  waits(id: string): boolean {
    return this.#waitsFor.has(id)
  }

  /** Returns the ids of the jobs for which a job waits, and the ids of the jobs that wait for it. */
  of(id: string): KnownDependencies {
    const waitsFor = [...(this.#waitsFor.get(id) ?? [])]
    const dependents = [...(this.#dependents.get(id)?.keys() ?? [])]
    return {
      waitsFor: waitsFor.slice(0, MAX_SHOWN_DEPENDENCIES),
      dependents: dependents.slice(0, MAX_SHOWN_DEPENDENCIES),
    }
  }

  /** Removes a job that has ended. Returns the jobs that have become ready, and the jobs that must be cancelled because of its end. */
  end(
    id: string,
    outcome: 'done' | 'trashed',
  ): { readonly ready: readonly string[]; readonly failed: readonly string[] } {
    for (const other of this.#waitsFor.get(id) ?? []) this.#dependents.get(other)?.delete(id)
    this.#waitsFor.delete(id)
    const dependents = [...(this.#dependents.get(id) ?? [])]
    this.#dependents.delete(id)
    const isFailed = (on: DependencyEnd) => outcome === 'trashed' && on === 'done'
    const failed = dependents.filter(([, on]) => isFailed(on)).map(([dependent]) => dependent)
    const met = dependents.filter(([, on]) => !isFailed(on)).map(([dependent]) => dependent)
    const ready = met.filter((dependent) => {
      const left = this.#waitsFor.get(dependent)
      left?.delete(id)
      if (left?.size !== 0) return false
      this.#waitsFor.delete(dependent)
      return true
    })
    return { ready, failed }
  }
}

export class MemoryDependencies implements BackendDependencies {
  readonly #board: MemoryBoard<{ readonly dependencies: DependencySteps }>

  constructor(board: MemoryBoard<{ readonly dependencies: DependencySteps }>) {
    this.#board = board
  }

  async of(id: string): Promise<KnownDependencies> {
    return this.#board.steps.dependencies.of(id)
  }
}
