export { MemoryBackend, memorySpace } from './backend.ts'
