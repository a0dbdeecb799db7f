"""The optimizers, schedules and decay rules BERT is trained with."""
