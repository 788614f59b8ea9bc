// Buttons with a picture in place of a word, and files that the browser saves.

const PICTURES = {
  pin: "M9 2h6l-1 7 4 4v2h-5v7h-2v-7H6v-2l4-4z",
  full: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  csv: "M12 3v12M7 10l5 5 5-5M4 20h16",
  picture: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01",
  up: "M6 15l6-6 6 6",
  down: "M6 9l6 6 6-6",
} as const;

interface PictureButtonProperties {
  picture: keyof typeof PICTURES;
  label: string;
  onClick(): void;
  isPressed?: boolean;
  isDisabled?: boolean;
}

export function PictureButton({ picture, label, onClick, isPressed, isDisabled }: PictureButtonProperties) {
  return (
    <button type="button" class="picture" aria-label={label} title={label} aria-pressed={isPressed} disabled={isDisabled} onClick={onClick}>
      <svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true">
        <path d={PICTURES[picture]} />
      </svg>
    </button>
  );
}

/** Have the browser save a file. */
export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
