/** The dependencies between jobs of a memory board that are not met. */
import type { Dependency, DependencyEnd } from '../../model/dependencies.ts'

export class MemoryDependencies {
  /** The jobs that depend on each job, and when the dependency is met. */
  readonly #dependents = new Map<string, Map<string, DependencyEnd>>()
  /** The jobs on which each job still depends. */
  readonly #waitsFor = new Map<string, Set<string>>()

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

  waitsFor(id: string): readonly string[] {
    return [...(this.#waitsFor.get(id) ?? [])]
  }

  dependentsOf(id: string): readonly string[] {
    return [...(this.#dependents.get(id)?.keys() ?? [])]
  }

  /** Removes a job that has ended; returns the jobs that have become ready, and those that are to be cancelled because of its end. */
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
