"""Progress without code: a reporter that the manager puts beside trainings which do not report by themselves.

An init container copies `trainer_reporter` into a volume (`install`), two variables make each Python of the training
container import it (`startup`), it registers callbacks with the frameworks that the training imports (`hooks`, `bars`),
says what the training was started with (`parameters`), and has torchrun end as its workers do (`torchrun`). None of its
modules imports anything of ours but their neighbours, `trainer.progress.report` and `trainer.checkpoints`.

How Python comes to import it, and what was weighed:

| way | why not |
|---|---|
| `sitecustomize`, `usercustomize` | there is one of each, and it would hide the image's; the latter is off in a venv |
| a `.pth` file | is read in site directories only, which belong to the image |
| a command before the command | ends at the first shell, launcher or torchrun, whose children are new processes |
| modules in front of those of the frameworks | break whoever looks for the files or the metadata of these |
| entry points of PyTorch, JAX and Lightning | XGBoost, Keras and tqdm have none; that of Lightning is used |
| PYTHONSTARTUP | is for interactive sessions only |
| **a warning filter** in PYTHONWARNINGS | is what is used |

Python imports the module of a warning category that a filter names before it runs anything, and says one line if it
cannot; so does each child, whoever starts it. The filter is for a warning that nobody issues, and is taken out of
`sys.warnoptions` before programs can see it. `python -E` and `-I` ignore it, and the training runs without.
"""
